# ingot: `make` builds build/ingot and build/libingot.a; `make help` lists the rest.
CC      ?= cc
BUILD   ?= build
CFLAGS  ?= -O2 -g
WARN    := -Wall -Wextra -Wpedantic -Werror
# Products are rounded before they are added, on every machine: no contraction to fma.
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -ffp-contract=off -fPIC $(WARN) -Isrc -I$(BUILD) $(CFLAGS)
PYTHON  ?= python3
# One short line for each file; V=1 shows the commands.
Q       := $(if $(V),,@)
say      = $(if $(V),,@printf '  %-6s %s\n' '$(1)' '$(2)')
# IMAGES=1: ImageDecoder reads JPEG, JPEG 2000 and WebP too, by libjpeg, OpenJPEG and libwebp.
ifdef IMAGES
ALL_CFLAGS += -DINGOT_IMAGES $(shell pkg-config --cflags libopenjp2)
override LDFLAGS += -ljpeg -lopenjp2 -lwebp
endif

# LLVM is found when ingot runs, and not needed to build it; LLVM=0 leaves engine jit out.
ifeq ($(LLVM),0)
ALL_CFLAGS += -DINGOT_NO_LLVM
endif

LIB_SRC := $(sort $(wildcard src/*.c src/base/*.c src/ir/*.c src/ir/*/*.c src/io/*.c src/tokenizer/*.c src/chat/*.c src/front/*.c src/front/*/*.c src/pass/*.c src/pass/*/*.c src/back/*/*.c src/api/*.c src/lang/*/*.c))
CLI_SRC := $(sort $(wildcard src/cli/*.c))
LIB_SRC := $(if $(filter 0,$(LLVM)),$(filter-out src/back/llvm/l%.c,$(LIB_SRC)),$(LIB_SRC))
GEN     := digits.onnx digits_test.bin
LIB_GEN := mathlib.h mathlibd.h mathlibf.h mathlibq.h mathlibs.h
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/obj/%.o) $(LIB_GEN:%=$(BUILD)/gen/%.o) $(BUILD)/gen/runner.o $(BUILD)/gen/player.o $(BUILD)/gen/script.o $(BUILD)/gen/peak.o $(BUILD)/gen/unicode.o $(BUILD)/gen/text_code.o $(BUILD)/gen/vm_source.o $(BUILD)/gen/vm_header.o $(BUILD)/gen/report.o \
           $(BUILD)/gen/module_text.o $(BUILD)/gen/module_types.o $(BUILD)/gen/export_text.o
VM_X86  := $(findstring x86_64,$(shell $(CC) -dumpmachine))
VM_OBJ  := $(if $(VM_X86),$(foreach x,avx2 avx512,$(BUILD)/obj/src/back/vm/$(x)/machine.o $(BUILD)/obj/src/back/vm/$(x)/tile.o))
LIB_OBJ += $(VM_OBJ)
CLI_OBJ := $(CLI_SRC:%.c=$(BUILD)/obj/%.o) $(GEN:%=$(BUILD)/gen/%.o) $(BUILD)/gen/speak.o

all: $(BUILD)/ingot $(BUILD)/libingot.a $(BUILD)/libingot.so

# What the program and the tests are linked with: every object by itself, every name visible.
$(BUILD)/objects.a: $(LIB_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

# What others link with is one object, in which only the names of ingot.h are global: `inflate` and `plan` stay theirs.
# Objects for link-time optimisation have no names yet that could be hidden.
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
	$(Q)$(CC) $(ALL_CFLAGS) -shared -Wl,--version-script=$(BUILD)/libingot.map -Wl,-Bsymbolic -Wl,-soname,libingot.so.$(SOVERSION) -o $@ $^ -lm -lpthread $(LDFLAGS)
	@ln -sf libingot.so $@.$(SOVERSION)

$(BUILD)/ingot: $(CLI_OBJ) $(BUILD)/objects.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $(CLI_OBJ) $(BUILD)/objects.a -lm -lpthread $(LDFLAGS)

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Files of models/ inside the binary and of src/ir inside the library, as arrays named after them:
# digits.onnx is digits_onnx. The tool runs here even when CC compiles for elsewhere; then set HOSTCC.
HOSTCC  ?= $(CC)
$(BUILD)/embed: tools/embed.c
	@mkdir -p $(@D)
	$(call say,HOSTCC,$<)
	$(Q)$(HOSTCC) -std=c11 $(WARN) -O1 -o $@ $<
$(GEN:%=$(BUILD)/gen/%.c): $(BUILD)/gen/%.c: models/% $(BUILD)/embed
	@mkdir -p $(@D)
	$(call say,EMBED,$<)
	$(Q)$(BUILD)/embed $(subst .,_,$*) $< $@
# The text of the program `ingot build` puts around a model: runner_text.
RUNNER := src/io/inflate.h src/io/zip.h src/base/mark.h tools/model.h tools/output.h tools/runner.c
$(BUILD)/gen/runner.c: $(RUNNER) $(BUILD)/embed Makefile
	@mkdir -p $(@D)
	$(call say,EMBED,$@)
	$(Q){ echo '#define _POSIX_C_SOURCE 200809L'; sed '/^#include "/d' $(RUNNER); } > $(BUILD)/gen/runner.txt
	$(Q)$(BUILD)/embed runner_text $(BUILD)/gen/runner.txt $@
# The text before a compiled program of the language: script_text.
SCRIPT := $(wildcard tools/script*.[ch] src/lang/run/*.[ch] src/lang/run/*.def src/base/*.[ch] src/ir/*.def src/io/*.[ch] src/lang/syntax/*.def) src/ir/ir.h src/ir/eval.c src/ir/dtype.c src/ir/tensor.c $(wildcard src/ir/math/mathlib*.h)
$(BUILD)/gen/script.c: $(SCRIPT) $(BUILD)/join $(BUILD)/embed Makefile
	@mkdir -p $(@D)
	$(call say,EMBED,$@)
	$(Q)$(BUILD)/join --apart -lang/run/lang_value.h -lang/run/dry.h tools/script_all.c $(BUILD)/gen/script.txt src tools
	$(Q)$(BUILD)/embed script_text $(BUILD)/gen/script.txt $@
# The program that measures what a machine can do, for `ingot bench --per-kernel`: peak_text.
$(BUILD)/gen/peak.c: bench/peak.c $(BUILD)/embed
	@mkdir -p $(@D)
	$(call say,EMBED,$<)
	$(Q)$(BUILD)/embed peak_text $< $@
# Text <-> ids and the sampler as text for generated C, text_code: every function static, in need of im_exp (mathlib.c writes it); guards that are those of no
# generated header.
TEXT_CODE := $(addprefix src/tokenizer/,tokenizer.h vocab_view.c pretokenize.c tokenizer_norm.c tokenizer_model.c encode.c decode.c) $(addprefix src/chat/,sample.h sample.c)
$(BUILD)/gen/text_code.c: $(TEXT_CODE) $(BUILD)/embed Makefile
	@mkdir -p $(@D)
	$(call say,EMBED,$@)
	$(Q){ printf '#include <%s>\n' stdbool.h stddef.h stdint.h string.h; \
	  printf 'typedef %s;\n' 'uint8_t u8' 'uint16_t u16' 'uint32_t u32' 'uint64_t u64' 'int64_t i64'; \
	  echo '#define TEXT_FN static'; sed -e '/^#include/d' -e 's/INGOT_\([A-Z]*\)_H$$/IG_\1_H/' $(TEXT_CODE); } > $(BUILD)/gen/text_code.txt
	$(Q)$(BUILD)/embed text_code $(BUILD)/gen/text_code.txt $@
# The text of the program around a language model: player_text.
PLAYER := tools/model.h tools/edit.h src/base/mark.h tools/output.h tools/player.c
$(BUILD)/gen/player.c: src/ir/math/mathlib.h src/ir/math/mathlibd.h $(BUILD)/gen/text_code.c $(PLAYER) $(BUILD)/embed Makefile
	@mkdir -p $(@D)
	$(call say,EMBED,$@)
	$(Q){ echo '#define _XOPEN_SOURCE 700'; sed '/^#include "/d' src/ir/math/mathlib.h src/ir/math/mathlibd.h; \
	  cat $(BUILD)/gen/text_code.txt; sed '/^#include "/d' $(PLAYER); } > $(BUILD)/gen/player.txt
	$(Q)$(BUILD)/embed player_text $(BUILD)/gen/player.txt $@
# The same program inside ingot, around the interpreter: for machines without a C compiler. Tables there are pointers here.
$(BUILD)/gen/speak.c: $(BUILD)/gen/player.c tools/speak.h Makefile
	$(call say,EMBED,$@)
	$(Q){ printf '#define %s\n' 'ingot_model (*speak_model)' 'ingot_player (*speak_player)' 'main player_main'; \
	  echo 'int main(int argc, char **argv);'; cat $(BUILD)/gen/player.txt; \
	  printf '%s\n' '#undef ingot_model' '#undef ingot_player' 'const Model *speak_model;' 'const Player *speak_player;'; \
	  printf '%s\n' 'struct Ingot;' 'int speak(struct Ingot *m, int argc, char **argv);'; cat tools/speak.h; } > $@
$(BUILD)/gen/speak.o: ALL_CFLAGS += -Isrc -Wno-unused-function
# The machine of the bytecode as one file and its header: vm_source, vm_header.
VM_STANDALONE := $(wildcard tools/vm/*.[ch] src/back/vm/*.h src/back/vm/*.def src/ir/math/mathlib*.h src/ir/*.def) src/ir/eval.c $(addprefix src/back/vm/,vm_ops.c vm_verify.c tile.c machine.c)
$(BUILD)/join: tools/join.c
	@mkdir -p $(@D)
	$(call say,HOSTCC,$<)
	$(Q)$(HOSTCC) -std=c11 $(WARN) -O1 -o $@ $<
$(BUILD)/gen/vm_source.c: $(VM_STANDALONE) $(BUILD)/join $(BUILD)/embed
	@mkdir -p $(@D)
	$(call say,EMBED,$@)
	$(Q)$(BUILD)/join -math.h -string.h -ir/ir.h -back/back.h tools/vm/ingot_vm.c $(BUILD)/gen/vm_source.txt src tools
	$(Q)$(BUILD)/embed vm_source $(BUILD)/gen/vm_source.txt $@
$(BUILD)/gen/vm_header.c: tools/vm/ingot_vm.h $(BUILD)/embed
	@mkdir -p $(@D)
	$(call say,EMBED,$@)
	$(Q)$(BUILD)/embed vm_header $< $@
# The page that `ingot inspect --html` fills with data: report_text.
REPORT := tools/report.html tools/report.css $(sort $(wildcard tools/report*.js))
$(BUILD)/gen/report.c: $(REPORT) $(BUILD)/embed Makefile
	@mkdir -p $(@D)
	$(call say,EMBED,$@)
	$(Q)cat $(filter %.js,$(REPORT)) > $(BUILD)/gen/report.js
	$(Q)sed -e '/@CSS@/{r tools/report.css' -e 'd}' -e '/@JS@/{r $(BUILD)/gen/report.js' -e 'd}' tools/report.html > $(BUILD)/gen/report.txt
	$(Q)grep -q @DATA@ $(BUILD)/gen/report.txt
	$(Q)$(BUILD)/embed report_text $(BUILD)/gen/report.txt $@
# What calls a model in WebAssembly, and its types: module_text, module_types.
$(BUILD)/gen/module_text.c: tools/module.mjs
$(BUILD)/gen/module_types.c: tools/module.d.mts
$(BUILD)/gen/module_text.c $(BUILD)/gen/module_types.c: $(BUILD)/gen/%.c: $(BUILD)/embed
	@mkdir -p $(@D)
	$(call say,EMBED,$@)
	$(Q)$(BUILD)/embed $* $(filter tools/%,$^) $@
# Templates of `ingot export`, each after a line with its path: export_text.
EXPORT := $(sort $(shell find tools/export -type f))
$(BUILD)/gen/export_text.c: $(EXPORT) $(BUILD)/embed Makefile
	@mkdir -p $(@D)
	$(call say,EMBED,$@)
	$(Q)for f in $(EXPORT:tools/export/%=%); do echo "==== $$f"; cat tools/export/$$f; done > $(BUILD)/gen/export_text.txt
	$(Q)$(BUILD)/embed export_text $(BUILD)/gen/export_text.txt $@
# What Unicode says of characters, for vocabularies: unicode_txt.
$(BUILD)/gen/unicode.c: src/tokenizer/unicode.txt $(BUILD)/embed
	@mkdir -p $(@D)
	$(call say,EMBED,$<)
	$(Q)$(BUILD)/embed unicode_txt $< $@
# Text of the elementary functions, see mathlib.c.
$(LIB_GEN:%=$(BUILD)/gen/%.c): $(BUILD)/gen/%.c: src/ir/math/% $(BUILD)/embed
	@mkdir -p $(@D)
	$(call say,EMBED,$<)
	$(Q)$(BUILD)/embed $(subst .,_,$*) $< $@
$(patsubst %,$(BUILD)/gen/%.o,$(GEN) $(LIB_GEN) runner player script speak peak unicode text_code vm_source vm_header report module_text module_types export_text): %.o: %.c
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

# The machine of the bytecode, once for each instruction set that it finds where it runs.
# Loops over lanes are written to be vectorised; floating-point exception flags are not read.
VM_LOOPS        := $(if $(findstring -fsanitize,$(CFLAGS)),,-O3 -fno-trapping-math)
# Sanitizers around hundreds of labels, or of tiles, cost an optimiser minutes; and so the form with a switch is tested.
VM_MACHINE      := $(if $(findstring -fsanitize,$(CFLAGS)),-DVM_SWITCH -O0)
# Loops over lanes of groups are written to be vectorised.
$(BUILD)/obj/src/ir/quant/qblock_search.o: ALL_CFLAGS += $(VM_LOOPS)
VM_FLAGS_avx2   := -DVM_AVX2 -mavx2 -mfma
VM_FLAGS_avx512 := -DVM_AVX512 -mavx2 -mfma -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mprefer-vector-width=512
ifneq (,$(VM_X86))
$(VM_OBJ): $(BUILD)/obj/src/back/vm/%.o:
	@mkdir -p $(@D)
	$(call say,CC,src/back/vm/$(notdir $*).c $(patsubst %/,%,$(dir $*)))
	$(Q)$(CC) $(ALL_CFLAGS) $(VM_LOOPS) $(VM_FLAGS_$(patsubst %/,%,$(dir $*))) -MMD -MP -c -o $@ src/back/vm/$(notdir $*).c
$(filter %/machine.o,$(VM_OBJ)): src/back/vm/machine.c
$(VM_OBJ): ALL_CFLAGS += $(VM_MACHINE)
$(filter %/tile.o,$(VM_OBJ)): src/back/vm/tile.c
$(BUILD)/obj/src/back/vm/vm_run.o: ALL_CFLAGS += -DINGOT_VM_X86
endif
$(BUILD)/obj/src/back/vm/machine.o $(BUILD)/obj/src/back/vm/tile.o: ALL_CFLAGS += $(VM_LOOPS)
$(BUILD)/obj/src/back/vm/machine.o: ALL_CFLAGS += $(VM_MACHINE)

-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d)

# ---- tests: objects of other builds live in build-asan, build-msan, build-tsan, ... ----

SAN     := -fsanitize=address,undefined -fno-sanitize-recover=all
SUBMAKE  = $(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))
UNIT    := $(patsubst test/unit/%.c,$(BUILD)/unit/%,$(wildcard test/unit/*.c))
FUZZ    := $(patsubst test/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard test/fuzz/*.c))
T       ?=

$(BUILD)/unit/%: test/unit/%.c $(BUILD)/objects.a $(wildcard test/unit/*.h)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $< $(BUILD)/objects.a -lm -lpthread $(LDFLAGS)

unit: $(UNIT)
	@$(PYTHON) test/run unit/

setup:
	@sh test/setup

# With clang its objects count where they come along, so that fuzz targets are linked from the same ones.
SAN_CC   = $(shell command -v clang || echo $(CC))
SAN_COUNT := -fsanitize-coverage=inline-8bit-counters,pc-table
SAN_MAKE = +@$(SUBMAKE) BUILD=build-asan CC="$(SAN_CC)" CFLAGS="-O1 -g1 $(SAN) $(if $(findstring clang,$(SAN_CC)),$(SAN_COUNT))"
asan: ; $(SAN_MAKE) all unit-programs
fuzz-smoke: asan ; $(SAN_MAKE) fuzz-programs
msan: ; +@$(SUBMAKE) BUILD=build-msan CC=clang CFLAGS="-O1 -g1 -fsanitize=memory -fno-omit-frame-pointer" all
# Arenas that ask for every piece by itself, so that each one can fail and sanitizers see where it ends.
hostile: asan ; $(SAN_MAKE) hostile-programs
hostile-programs: $(BUILD)/hostile/ingot $(BUILD)/hostile/oom
$(BUILD)/hostile/ingot: $(CLI_OBJ)
$(BUILD)/hostile/oom: test/unit/oom.c $(wildcard test/unit/*.h)
$(BUILD)/hostile/%: src/base/arena.c src/base/map.c $(BUILD)/objects.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -DINGOT_HOSTILE -o $@ $(filter-out %.a %.h,$^) $(BUILD)/objects.a -lm -lpthread $(LDFLAGS)
tsan: ; +@$(SUBMAKE) BUILD=build-tsan CFLAGS="-O1 -g1 -fsanitize=thread" build-tsan/unit/threads
unit-programs: $(UNIT) $(BUILD)/randgraph

# What needs nothing but a C compiler, make and python3, and less than a minute.
check:
	+@$(SUBMAKE) all $(UNIT)
	@ENGINES="ref interp c" $(PYTHON) test/run --check $(T)

test: setup
	+@$(SUBMAKE) all unit-programs
	@$(PYTHON) test/run $(T)

# And those that need large packages (a browser, for instance) or much time: test/heavy/.
test-all:
	@HEAVY=1 sh test/setup
	+@$(SUBMAKE) all unit-programs
	@$(PYTHON) test/run --all $(T)

lint:
	@$(PYTHON) test/run lint/

format:
	clang-format -i $(shell find src test tools bench -name '*.[ch]')

wc:
	@$(PYTHON) test/wc.py

coverage-doc: setup all
	@$(PYTHON) test/run --coverage-doc official/node/ official/pytorch-converted/ official/pytorch-operator/ official/simple/ official/coverage

docs: all
	@$(PYTHON) tools/opdoc.py --write
	@$(PYTHON) test/run --bless docs/

$(BUILD)/fuzz/%: test/fuzz/%.c $(BUILD)/objects.a $(wildcard test/fuzz/*.h)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer -o $@ $< $(BUILD)/objects.a -lm -lpthread
fuzz-programs: $(FUZZ)

# RUNS=10000000 TARGET=fuzz_reader make fuzz: a campaign with new seeds, in a build that sees what is compared, too; findings are left in build-fuzz/TARGET-*.
RUNS    ?= 10000000
TARGET  ?=
fuzz: setup
	+@$(SUBMAKE) BUILD=build-fuzz CC=clang CFLAGS="-O1 -g1 $(SAN) -fsanitize=fuzzer-no-link" fuzz-programs
	@$(PYTHON) test/fuzz.py --runs $(RUNS) $(TARGET)

# The picture of README.md, from a report in a browser: docs/report.svg.
picture: all
	@$(PYTHON) tools/picture.py

# N=20000 make gen: random graphs on all engines; SEED=1000, OPS=conv,contract,MAP, GENFLAGS="--cc clang".
N       ?= 2000
SEED    ?= 1
OPS    ?=
$(BUILD)/randgraph: $(wildcard test/gen/*.[ch]) $(BUILD)/objects.a
	$(CC) $(ALL_CFLAGS) -o $@ $(wildcard test/gen/*.c) $(BUILD)/objects.a -lm -lpthread $(LDFLAGS)
gen: all $(BUILD)/randgraph
	@mkdir -p $(BUILD)/tmp/gen
	@$(BUILD)/randgraph --folder $(BUILD)/tmp/gen --seed $(SEED) --count $(N) $(if $(OPS),--only $(OPS)) $(GENFLAGS)

# ONLY=NAME,.. ENGINES=.. THREADS=1,2 QUICK=1 choose what is measured; the document is written from all results kept.
ONLY    ?= *
ENGINES ?= ort,openvino,mnn,ingot-gcc,ingot-clang
THREADS ?= 1,2
# N=2000 make gen-onnx: random ONNX models compared with ONNX Runtime; every tenth also as C.
gen-onnx: setup all
	@$(BUILD)/venv/bin/python test/make/genonnx.py --seed $(SEED) --count $(N) --c 10 $(if $(OPS),--ops $(OPS))

# The official runner over python/ingot/backend.py; ENGINE=c PATTERN=test_conv.
ENGINE  ?= interp
backend: setup all
	@$(BUILD)/venv/bin/python test/backend.py --engine $(ENGINE) --real $(PATTERN)

# The data of other releases of onnx: VERSIONS="1.13.1 1.23.2".
releases: setup all
	@$(BUILD)/venv/bin/python test/releases.py $(VERSIONS)

# ONLY='timm/*,torch/lstm' make torch: networks through both exporters of torch, as C, compared with ONNX Runtime. Fetches 2.5 GB the first time.
torch: all
	@cmp -s test/requirements-torch.txt $(BUILD)/torch/requirements.txt || { rm -rf $(BUILD)/torch && $(PYTHON) -m venv $(BUILD)/torch && \
	  $(BUILD)/torch/bin/pip install --disable-pip-version-check --no-cache-dir --no-deps -q -r test/requirements-torch.txt && \
	  cp test/requirements-torch.txt $(BUILD)/torch/requirements.txt; }
	@$(BUILD)/torch/bin/python test/exporters.py --ingot $(BUILD)/ingot --only '$(ONLY)'
# The same Python: losses of a few steps of training compared with PyTorch.
torch-train: all
	@$(BUILD)/torch/bin/python test/traintorch.py --ingot $(BUILD)/ingot --only '$(ONLY)'
# Time of such steps; CURVE=1: their losses over 100 steps instead.
bench-train: all
	@$(BUILD)/torch/bin/python bench/train.py $(if $(filter-out *,$(ONLY)),--only '$(ONLY)') $(if $(CURVE),--curve) $(if $(QUICK),--quick) $(if $(filter-out *,$(ONLY))$(CURVE)$(QUICK),,--write docs/results/training.md)

bench: setup all $(BUILD)/bench/plan
	@$(PYTHON) bench/peers.py --only '$(ONLY)' --engines $(ENGINES) --threads $(THREADS) $(if $(QUICK),--quick)
	@$(PYTHON) bench/micro.py $(if $(QUICK),--quick)
	@$(PYTHON) bench/report.py
	@$(PYTHON) bench/run
	@$(BUILD)/venv/bin/python bench/c.py $(if $(QUICK),sense arm)
	@$(PYTHON) bench/plan.py

$(BUILD)/bench/plan: bench/plan.c bench/plan_cases.h $(BUILD)/objects.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -o $@ $< $(BUILD)/objects.a -lm -lpthread $(LDFLAGS)
bench-c: setup all
	@$(BUILD)/venv/bin/python bench/c.py
bench-plan: setup all $(BUILD)/bench/plan
	@$(PYTHON) bench/plan.py
bench-engines: setup all
	@$(BUILD)/venv/bin/python bench/inside.py --only '$(if $(filter *,$(ONLY)),,$(ONLY))' $(if $(QUICK),--rounds 5 --no-first)
	@$(PYTHON) bench/expression.py $(if $(QUICK),0.2)
	@$(BUILD)/venv/bin/python bench/f64.py $(if $(QUICK),--rounds 5)
# Networks in headless Chromium compared with ONNX Runtime Web: docs/results/browser.md.
bench-browser: setup all
	@$(BUILD)/venv/bin/python bench/browser.py $(if $(filter *,$(ONLY)),--write docs/results/browser.md,--only '$(ONLY)')
# Flash and RAM of models as bytecode and as C on a simulated Cortex-M4: docs/results/boards.md.
boards: all
	@$(PYTHON) bench/boards.py --write docs/results/boards.md
bench-llm: setup all
	@$(PYTHON) bench/llm.py --only '$(ONLY)' --threads $(THREADS) $(if $(QUICK),--rounds 1,--doc)
	@$(PYTHON) bench/llm.py --prompts

# Compares the C, bytecode and Prog text that commit OLD and this tree generate. OLD is built once, in build/replay/COMMIT.
OLD    ?= HEAD
OLD_ID  = $(shell git rev-parse --short=12 '$(OLD)^{commit}')
OLD_DIR = $(BUILD)/replay/$(OLD_ID)
replay: $(BUILD)/ingot
	@test -n '$(OLD_ID)' || { echo "replay: OLD=$(OLD) is not a commit"; exit 2; }
	@test -x $(OLD_DIR)/build/ingot || { mkdir -p $(OLD_DIR) && git archive $(OLD_ID) | tar -x -C $(OLD_DIR) && $(MAKE) -C $(OLD_DIR) BUILD=build build/ingot; }
	@$(PYTHON) bench/replay.py $(OLD_DIR)/build/ingot $(BUILD)/ingot --only '$(MODELS)' --every $(or $(EVERY),1) $(if $(NAMES),--names)

# ingot with a profile of its own work: build-tuned/CC-pgo/ingot, and how long it takes for ten networks. PGOFLAGS="--cc clang --bolt".
pgo: setup all
	@$(PYTHON) bench/pgo.py $(PGOFLAGS)
bench-tuned: setup all
	@$(PYTHON) bench/tuned.py $(if $(filter *,$(ONLY)),,--only '$(ONLY)') $(if $(QUICK),--rounds 3,--doc)

run:
	+@$(SUBMAKE) all
	@CC="$(CC)" $(BUILD)/ingot demo --engine c

# One page with the built-in model as WebAssembly inside; it opens from disk.
demo: $(BUILD)/demo/digits.html
	@echo 'open $(abspath $<) in a browser'
$(BUILD)/demo/digits.html: $(BUILD)/ingot tools/demo/page.html tools/demo/page.mjs models/digits.onnx
	@mkdir -p $(@D)
	$(Q)$(BUILD)/ingot build models/digits.onnx -d batch=1 -o $(@D)/digits.wasm
	$(Q){ cat tools/demo/page.html $(@D)/digits.mjs; printf 'const BYTES = "'; base64 -w0 $(@D)/digits.wasm; echo '";'; cat tools/demo/page.mjs; echo '</script>'; } >$@.tmp
	$(Q)mv $@.tmp $@

# ---- install ----

PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
VERSION  = $(shell sed -n 's/^\#define INGOT_VERSION *"\(.*\)"/\1/p' src/ingot.h)

$(BUILD)/ingot.pc: src/ingot.h Makefile
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(patsubst $(PREFIX)/%,$${prefix}/%,$(LIBDIR))' 'includedir=$${prefix}/include' '' \
	  'Name: ingot' 'Description: compiler for neural networks' 'Version: $(VERSION)' \
	  'Libs: -L$${libdir} -lingot -lm -lpthread' 'Cflags: -I$${includedir}' >$@

install: all
	@rm -f $(BUILD)/ingot.pc && $(MAKE) --no-print-directory $(BUILD)/ingot.pc
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin include share/man/man1) $(addprefix $(DESTDIR)$(LIBDIR)/,pkgconfig cmake/ingot)
	install -m 755 $(BUILD)/ingot $(DESTDIR)$(PREFIX)/bin/ingot
	install -m 644 $(BUILD)/libingot.a $(DESTDIR)$(LIBDIR)/libingot.a
	install -m 755 $(BUILD)/libingot.so $(DESTDIR)$(LIBDIR)/libingot.so.$(VERSION)
	ln -sf libingot.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libingot.so.$(SOVERSION)
	ln -sf libingot.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/libingot.so
	install -m 644 src/ingot.h $(DESTDIR)$(PREFIX)/include/ingot.h
	install -m 644 $(BUILD)/ingot.pc $(DESTDIR)$(LIBDIR)/pkgconfig/ingot.pc
	install -m 644 docs/ingot.1 $(DESTDIR)$(PREFIX)/share/man/man1/ingot.1
	@for to in bash:bash-completion/completions/ingot zsh:zsh/site-functions/_ingot fish:fish/vendor_completions.d/ingot.fish; do \
	  $(BUILD)/ingot completions $${to%%:*} >$(BUILD)/completion || { echo 'note: it does not run here, so no completions'; break; }; \
	  install -D -m 644 $(BUILD)/completion $(DESTDIR)$(PREFIX)/share/$${to#*:} || exit 1; done
	install -m 644 cmake/ingotConfig.cmake $(DESTDIR)$(LIBDIR)/cmake/ingot/ingotConfig.cmake
	@printf '%s\n' 'set(PACKAGE_VERSION $(VERSION))' 'if(PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)' '  set(PACKAGE_VERSION_COMPATIBLE FALSE)' 'else()' \
	  '  set(PACKAGE_VERSION_COMPATIBLE TRUE)' 'endif()' 'if(PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION)' '  set(PACKAGE_VERSION_EXACT TRUE)' 'endif()' \
	  >$(DESTDIR)$(LIBDIR)/cmake/ingot/ingotConfigVersion.cmake

# ---- archives ----

# What git knows of, as it lies here, or all of an unpacked archive. The same files make the same bytes: one date (SOURCE_DATE_EPOCH, else that
# of the last commit, else that of the archive), one owner, one order.
DIST     = $(BUILD)/dist/ingot-$(VERSION).tar.gz
GIT     := git -c safe.directory='*' # somebody else may own the files
DATE     = $(or $(SOURCE_DATE_EPOCH),$(shell if [ -e .git ]; then $(GIT) log -1 --format=%ct; else stat -c %Y Makefile; fi))
dist:
	@mkdir -p $(BUILD)/dist
	$(call say,TAR,$(DIST))
	$(Q)if [ -e .git ]; then $(GIT) ls-files -z; else find . -type d \( -path './build*' -o -name __pycache__ -o -path ./debian \) -prune -o -type f -printf '%P\0'; fi \
	  | LC_ALL=C sort -z >$(BUILD)/dist/files
	@[ -s $(BUILD)/dist/files ] || { echo 'make dist: git lists no files here' >&2; exit 1; }
	$(Q)tar --create --file=$(DIST:.gz=) --null --format=ustar --mtime=@$(DATE) --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
	  --transform='s,^,ingot-$(VERSION)/,' --files-from=$(BUILD)/dist/files
	$(Q)gzip -9nf $(DIST:.gz=)

# Debian packages of that archive, in build/deb: ingot, libingot0 and libingot-dev; tools/debian has what makes them. DEBFULLNAME and DEBEMAIL
# say who does; DEB_BUILD_OPTIONS=nocheck leaves `make check` out.
DEB      = $(BUILD)/deb/ingot-$(VERSION)
MAINTAINER = $(or $(DEBFULLNAME),ingot maintainers) <$(or $(DEBEMAIL),maintainers@ingot.invalid)>
deb: dist
	@rm -rf $(BUILD)/deb && mkdir -p $(BUILD)/deb
	$(Q)tar xf $(DIST) -C $(BUILD)/deb
	$(Q)cp -r $(DEB)/tools/debian $(DEB)/debian
	$(Q)sed -i -e 's/@VERSION@/$(VERSION)/g' -e 's/@MAINTAINER@/$(MAINTAINER)/' -e "s/@DATE@/$$(LC_ALL=C date -uR -d @$(DATE))/" -e "s/@YEAR@/$$(date -u +%Y -d @$(DATE))/" \
	  $(addprefix $(DEB)/debian/,control changelog copyright)
	+$(Q)cd $(DEB) && env -u MAKEFLAGS -u MAKELEVEL -u BUILD dpkg-buildpackage --build=binary --no-sign -j$(shell nproc) >../log 2>&1 || { tail -n 30 ../log; exit 1; }
	@rm -rf $(DEB) && ls $(BUILD)/deb/*.deb

clean:
	rm -rf $(BUILD)/obj $(BUILD)/gen $(BUILD)/embed $(BUILD)/join $(BUILD)/unit $(BUILD)/randgraph $(BUILD)/ingot $(BUILD)/objects.a $(BUILD)/libingot.* build-asan build-msan build-fuzz build-tsan build-tuned
distclean:
	rm -rf build build-asan build-msan build-fuzz build-tsan build-tuned

help:
	@printf '%s\n' \
	  'make               build/ingot, build/libingot.a and .so (CC, CFLAGS, BUILD can be set; V=1: commands; LLVM=0: without engine jit)' \
	  'make run           the built-in digit model on held-out digits' \
	  'make demo          a page that reads digits as you draw them: build/demo/digits.html (needs clang and lld)' \
	  'make check         in a minute, with nothing but a C compiler and python3: the part of the tests to run while working' \
	  'make test          everything; T=PATTERN runs the tests whose names match' \
	  'make test-all      those and the heavy ones, which fetch a browser and other large packages' \
	  'make unit          the C programs of test/unit only' \
	  'make lint          clang-format, clang-tidy, layering (part of make test)' \
	  'make format        clang-format over all C files' \
	  'make replay        OLD=COMMIT: compare generated C, bytecode and Prog text; NAMES=1 ignores identifiers' \
  'make fuzz          fuzz campaign: RUNS=10000000 TARGET=fuzz_reader' \
	  'make releases      the test data of other releases of onnx' \
	  'make gen-onnx      random ONNX models compared with ONNX Runtime: N=2000 SEED=1 OPS=Conv,Resize' \
	  'make torch-train   steps of training compared with PyTorch, after make torch: ONLY=resnet18' \
	  'make bench-train   steps and losses compared with PyTorch, after make torch: docs/results/training.md; ONLY=mlp,lenet,resnet18 CURVE=1 QUICK=1' \
	  'make torch         networks through both exporters of torch compared with ONNX Runtime: ONLY=timm/*' \
	  'make backend       the test runner of onnx over python/ingot/backend.py' \
	  'make gen           random graphs on all engines: N=20000 SEED=1 OPS=conv,contract,MAP' \
	  'make bench         compare with ONNX Runtime, OpenVINO, MNN: docs/results/networks.md; ONLY=resnet18 THREADS=1 QUICK=1' \
	  'make bench-c       generated C: memory, code, time, compared with emx-onnx-cgen; boards; large weights' \
	  'make bench-plan    memory plans compared with the lower bound' \
	  'make bench-engines vm, jit and C compared, one expression, f64 kernels compared with NumPy; ONLY=lstm,gru QUICK=1' \
	  'make boards        models as bytecode and as C on a simulated Cortex-M4, flash and RAM: docs/results/boards.md' \
	  'make bench-browser WebAssembly compared with ONNX Runtime Web in headless Chromium: docs/results/browser.md; ONLY=digits' \
	  'make bench-llm     language models compared with llama.cpp: docs/results/llm.md; ONLY=SmolLM2* THREADS=1 QUICK=1' \
	  'make bench-tuned   what native, LTO, PGO and BOLT gain, gcc and clang: docs/results/tuned.md; ONLY=sense QUICK=1' \
	  'make pgo           ingot compiled with a profile of its own work, and what that gains; PGOFLAGS="--cc clang --bolt"' \
	  'make picture       docs/report.svg, the picture of README.md, with chromium' \
	  'make docs          writes what commands print, and the tables, into the documents' \
	  'make coverage-doc  writes docs/results/coverage.md from the official test suite' \
	  'make wc            sizes of the source files' \
	  'make install       PREFIX=/usr/local LIBDIR=/usr/local/lib DESTDIR=' \
	  'make dist          an archive of the sources, the same bytes each time: build/dist' \
	  'make deb           packages for Debian: build/deb (needs debhelper)' \
	  'make clean         remove what was built; make distclean also removes downloads'

.PHONY: replay all unit unit-programs setup asan msan hostile hostile-programs tsan check test test-all lint format picture wc docs coverage-doc fuzz fuzz-programs fuzz-smoke gen gen-onnx backend releases torch torch-train \
  bench bench-c bench-plan bench-engines bench-browser boards bench-llm bench-tuned bench-train pgo run demo install dist deb clean distclean help
