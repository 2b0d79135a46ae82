# ingot: `make` builds build/ingot and build/libingot.a; `make help` lists the rest.
CC      ?= cc
BUILD   ?= build
CFLAGS  ?= -O2 -g
WARN    := -Wall -Wextra -Wpedantic -Werror
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE $(WARN) -Isrc -I$(BUILD) $(CFLAGS)
PYTHON  ?= python3

LIB_SRC := $(sort $(wildcard src/*.c src/base/*.c src/ir/*.c src/onnx/*.c src/pass/*.c src/back/*.c src/back/*/*.c))
CLI_SRC := $(sort $(wildcard src/cli/*.c))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/obj/%.o)
CLI_OBJ := $(CLI_SRC:%.c=$(BUILD)/obj/%.o)

all: $(BUILD)/ingot $(BUILD)/libingot.a

$(BUILD)/libingot.a: $(LIB_OBJ)
	rm -f $@ && ar rcs $@ $^

$(BUILD)/ingot: $(CLI_OBJ) $(BUILD)/libingot.a
	$(CC) $(ALL_CFLAGS) -o $@ $(CLI_OBJ) $(BUILD)/libingot.a -lm $(LDFLAGS)

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d)

clean:
	rm -rf $(BUILD)

.PHONY: all clean
