# ingot: `make` builds build/ingot and build/libingot.a; `make help` lists the rest, from the lines that begin with ##.
CC      ?= cc
BUILD   ?= build
CFLAGS  ?= -O2 -g
PYTHON  ?= python3
WARN    := -Wall -Wextra -Wpedantic -Werror
# Products are rounded before they are added, on every machine: no contraction to fma.
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -ffp-contract=off -fPIC $(WARN) -Isrc -I$(BUILD) $(CFLAGS)
LIBS     = -lm -lpthread $(LDFLAGS)
# One short line for each file; V=1 shows the commands.
Q       := $(if $(V),,@)
say      = $(if $(V),,@printf '  %-6s %s\n' '$(1)' '$(2)')
SUBMAKE  = $(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))
.DELETE_ON_ERROR:

# IMAGES=1: ImageDecoder reads JPEG, JPEG 2000 and WebP too, by libjpeg, OpenJPEG and libwebp.
ifdef IMAGES
ALL_CFLAGS += -DINGOT_IMAGES $(shell pkg-config --cflags libopenjp2)
override LDFLAGS += -ljpeg -lopenjp2 -lwebp
endif
# LLVM is found when ingot runs, and not needed to build it; LLVM=0 leaves engine jit out.
ifeq ($(LLVM),0)
ALL_CFLAGS += -DINGOT_NO_LLVM
endif

CLI_SRC := $(sort $(wildcard src/cli/*.c))
LIB_SRC := $(sort $(filter-out $(CLI_SRC),$(wildcard src/*.c src/*/*.c src/*/*/*.c)))
LIB_SRC := $(if $(filter 0,$(LLVM)),$(filter-out src/back/llvm/l%.c,$(LIB_SRC)),$(LIB_SRC))
EMBED   := $(shell sed -n 's/^\[\(.*\)\]$$/\1/p' tools/embed.txt)
CLI_EMBED := digits_onnx digits_test_bin play_inside
VM_X86  := $(findstring x86_64,$(shell $(CC) -dumpmachine))
VM_OBJ  := $(if $(VM_X86),$(foreach x,avx2 avx512,$(BUILD)/obj/src/back/vm/$(x)/machine.o $(BUILD)/obj/src/back/vm/$(x)/tile.o))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/obj/%.o) $(patsubst %,$(BUILD)/gen/%.o,$(filter-out $(CLI_EMBED),$(EMBED))) $(VM_OBJ)
CLI_OBJ := $(CLI_SRC:%.c=$(BUILD)/obj/%.o) $(CLI_EMBED:%=$(BUILD)/gen/%.o)

## make               build/ingot, build/libingot.a and .so (CC, CFLAGS, BUILD can be set; V=1: commands; LLVM=0: without engine jit)
all: $(BUILD)/ingot $(BUILD)/libingot.a $(BUILD)/libingot.so

# What the program and the tests are linked with: every object by itself, every name visible.
$(BUILD)/objects.a: $(LIB_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

# What others link with is one object, in which only the names of ingot.h are global: `inflate` and `plan` stay theirs.
# Objects for link-time optimization have no names yet that could be hidden.
OBJCOPY ?= $(shell $(CC) -print-prog-name=objcopy)
RELINK   = $(shell $(CC) -print-prog-name=ld) -r -o $(BUILD)/libingot.o $^ && $(OBJCOPY) --wildcard --keep-global-symbol='ingot_*' $(BUILD)/libingot.o
$(BUILD)/libingot.a: $(LIB_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)if $(if $(findstring -flto,$(CC) $(CFLAGS)),false,command -v $(OBJCOPY) >/dev/null && $(RELINK)); then ar rcs $@ $(BUILD)/libingot.o; else \
	  echo 'note: without objcopy, or with -flto, $@ exports internal names too' && ar rcs $@ $^; fi
	$(Q)rm -f $(BUILD)/libingot.o

# Only the names of ingot.h are visible in the shared library; inside it calls go straight. SOVERSION goes up when programs have to be linked anew.
SOVERSION := 0
$(BUILD)/libingot.so: $(LIB_OBJ)
	@echo '{ global: ingot_*; local: *; };' >$(BUILD)/libingot.map
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -shared -Wl,--version-script=$(BUILD)/libingot.map -Wl,-Bsymbolic -Wl,-soname,libingot.so.$(SOVERSION) -o $@ $^ $(LIBS)
	@ln -sf libingot.so $@.$(SOVERSION)

$(BUILD)/ingot: $(CLI_OBJ) $(BUILD)/objects.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $(CLI_OBJ) $(BUILD)/objects.a $(LIBS)

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Texts and files inside the binaries: a section of tools/embed.txt each. The tool runs here even when CC compiles for elsewhere; then set HOSTCC.
HOSTCC  ?= $(CC)
$(BUILD)/embed: tools/embed.c
	@mkdir -p $(@D)
	$(call say,HOSTCC,$<)
	$(Q)$(HOSTCC) -std=c11 $(WARN) -O1 -o $@ $<
$(EMBED:%=$(BUILD)/gen/%.c): $(BUILD)/gen/%.c: tools/embed.txt $(BUILD)/embed
	@mkdir -p $(@D)
	$(call say,EMBED,$*)
	$(Q)$(BUILD)/embed tools/embed.txt $* $@
$(EMBED:%=$(BUILD)/gen/%.o): %.o: %.c
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<
$(BUILD)/gen/play_inside.o: ALL_CFLAGS += -Wno-unused-function

# The bytecode interpreter, once for each instruction set that it finds where it runs. Loops over lanes are written to be vectorized;
# floating-point exception flags are not read. Sanitizers around hundreds of labels cost an optimizer minutes: they test the form with a switch.
SANITIZED       := $(findstring -fsanitize,$(CFLAGS))
VM_LOOPS        := $(if $(SANITIZED),,-O3 -fno-trapping-math)
VM_FLAGS_avx2   := -DVM_AVX2 -mavx2 -mfma
VM_FLAGS_avx512 := -DVM_AVX512 -mavx2 -mfma -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mprefer-vector-width=512
ifneq (,$(VM_X86))
$(VM_OBJ): $(BUILD)/obj/src/back/vm/%.o:
	@mkdir -p $(@D)
	$(call say,CC,src/back/vm/$(notdir $*).c $(patsubst %/,%,$(dir $*)))
	$(Q)$(CC) $(ALL_CFLAGS) $(VM_FLAGS_$(patsubst %/,%,$(dir $*))) -MMD -MP -c -o $@ src/back/vm/$(notdir $*).c
$(filter %/machine.o,$(VM_OBJ)): src/back/vm/machine.c
$(filter %/tile.o,$(VM_OBJ)): src/back/vm/tile.c
endif
$(VM_OBJ) $(BUILD)/obj/src/back/vm/machine.o $(BUILD)/obj/src/back/vm/tile.o $(BUILD)/obj/src/ir/quant/qblock_search.o: ALL_CFLAGS += $(VM_LOOPS)
$(VM_OBJ) $(BUILD)/obj/src/back/vm/machine.o: ALL_CFLAGS += $(if $(SANITIZED),-DVM_SWITCH -O0)
$(BUILD)/obj/src/back/vm/vm_run.o: ALL_CFLAGS += $(if $(VM_X86),-DINGOT_VM_X86)

-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(EMBED:%=$(BUILD)/gen/%.c.d)

## make run           the built-in digit model on held-out digits
run:
	+@$(SUBMAKE) all
	@CC="$(CC)" $(BUILD)/ingot demo --engine c

# A package of sources for Python has neither tests nor benchmarks.
-include test/Makefile bench/Makefile
include tools/package.mk

## make format        clang-format over all C files
format:
	clang-format -i $(shell find src test tools bench -name '*.[ch]')

## make clean         remove what was built; make distclean also removes downloads
clean:
	rm -rf $(BUILD)/obj $(BUILD)/gen $(BUILD)/embed $(BUILD)/unit $(BUILD)/randgraph $(BUILD)/ingot $(BUILD)/objects.a $(BUILD)/libingot.* build-asan build-msan build-fuzz build-tsan build-pgo
distclean:
	rm -rf build build-asan build-msan build-fuzz build-tsan build-pgo

help:
	@sed -n 's/^## //p' $(filter %Makefile %.mk,$(MAKEFILE_LIST))

.PHONY: all run format clean distclean help
