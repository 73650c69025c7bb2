# explain.mk - the page of build/explain: its sources become arrays of the program, and so does the library as a
# WebAssembly module. The module is a file of the repository, live.wasm.gz, so that a page needs nothing but the C
# compiler; `make live` makes the file again, with clang.

# WASI is the folder of the C library for WebAssembly.
WASM_CC  = clang
WASI     = /usr
# Without -nostdlibinc clang would take headers of this system. A product and a sum are never fused,
# as in the baseline kernels of x86-64: float32 has the same digits. All browsers have had vectors of
# 128 bits (simd128) since 2023; with them recall is trained three times as fast.
WASM_FLAGS = $(WASM_FIRST) --target=wasm32-wasi --sysroot=$(WASI) -nostdlibinc -isystem $(WASI)/include/wasm32-wasi \
             -Iexamples/explain/wasm -msimd128 -Os -std=c11 -D_XOPEN_SOURCE=700 \
             -DISA=baseline -DHAVE_baseline -ffp-contract=off -fno-math-errno -fno-trapping-math \
             -ffile-prefix-map="$$PWD"=. $(WARN) -Wno-psabi -Wno-pass-failed
# No -O here: with -O clang runs any wasm-opt that clang finds.
WASM_LINK  = --target=wasm32-wasi --sysroot=$(WASI) -Wl,--stack-first -Wl,-z,stack-size=1048576
# The addresses in the code have as many bytes as they need, not five: 3 KB less in the page.
REACTOR    = -mexec-model=reactor -s -Wl,--compress-relocations $(EXPORTED:%=-Wl,--export=%)
EXPORTED   = live_request live_answer live_tensors
PACK       = zopfli -c

# explain's lessons, and its page: the sources of the page are arrays of the program. page.css is all
# style sheets, page.js all scripts: page.js is the one that begins, and the playground follows it.
PAGE_AT  = $(BUILD)/obj/examples/explain/page
PAGE     = $(patsubst %,$(PAGE_AT)/%.o,page.html page.css page.js)
STYLES   = $(patsubst %,examples/explain/page/%.css,base machine door step sgd play media)
SCRIPTS  = $(patsubst %,examples/explain/page/%.js,live elements names store data plan views pictures \
             compare tables layout machine marks terms nudge sgd loop step experiment words questions charts cover again pull controls \
             door way change panels share save paper keys page play)
EXPLAIN  = $(patsubst %,examples/explain/%/*.c,lessons steps rules page)
LESSONS  = $(call objects,$(call files,$(EXPLAIN) examples/recall/*.c)) $(SOURCED) $(PAGE)
# The module: all of the library but threads and the writing of files, the lessons, and recall.
WASM     = $(patsubst %.c,$(BUILD)/obj/wasm/%.o,$(KERNELS) examples/explain/wasm/pool.c tensor/simple/one_thread.c \
             $(filter-out tensor/fast/pool.c tensor/fast/threads.c tensor/files/replace.c tensor/files/win32.c,$(LIBRARY)) \
             $(filter-out $(patsubst %,examples/explain/%.c,page/check page/html steps/tables steps/text),$(call files,$(EXPLAIN))) \
             examples/recall/model.c $(patsubst %,examples/common/%.c,attention_map mistakes plural put_text utf8)) $(BUILD)/obj/wasm/sources.o
MODULE   = $(BUILD)/obj/examples/explain/live.wasm.o
# What a program needs to write a page of its tape: the steps, and the page.
PLANNER  = $(patsubst %,rules/%,card rows rule_eval rule_parse rules tree) \
           $(patsubst %,steps/%,algebra format formula known nudge plan reasons sentences worked) page/plan_json
RECORDER = $(call objects,$(patsubst %,examples/explain/%.c,$(PLANNER) $(patsubst %,page/%,html json program recording))) $(SOURCED) $(PAGE)
# The lines of C that the page shows beside a step, which cut.awk cuts out of these files.
SOURCED  = $(BUILD)/obj/sources.o
CUT      = $(patsubst %,tensor/kernels/%,elementwise.def plain_math.h plain.inc) \
           $(call files,tensor/kernels/plain_*.inc tensor/more/*.inc autograd/*.c autograd/*/*.c \
             examples/explain/lessons/lesson*.c)

# ---- how to build it ------------------------------------------------------------------------------------------

$(BUILD)/explain$(EXE): $(LESSONS) $(MODULE)
$(patsubst %,$(BUILD)/%$(EXE),recall reverse heads charlm pronounce): $(RECORDER)

$(BUILD)/obj/wasm/%.o: %.c $(BUILD)/flags.wasm
	$(quiet)echo "  wasm $@"; mkdir -p $(@D); $(WASM_CC) $(WASM_FLAGS) $(WASM_SPEED) -MMD -MP -c $< -o $@
$(BUILD)/obj/wasm/sources.o: $(SOURCED:.o=.c) $(BUILD)/flags.wasm
	$(quiet)echo "  wasm $@"; mkdir -p $(@D); $(WASM_CC) $(WASM_FLAGS) -I. -MMD -MP -c $< -o $@
# -O2 saves a tenth of additive attention's time, and costs 700 bytes.
$(BUILD)/obj/wasm/tensor/fast/fast.o: WASM_SPEED = -O2
# All that is done once for an answer only has to be small.
$(BUILD)/obj/wasm/examples/explain/%.o: WASM_SPEED = -Oz
$(BUILD)/live.wasm: $(WASM)
	$(quiet)echo "  link $@"; $(WASM_CC) $(WASM_LINK) $(REACTOR) $^ -o $@
# zopfli writes what gzip reads, in fewer bytes, with no name and no time: the same sources, clang and C library make the
# same bytes.
$(BUILD)/live.wasm.gz: $(BUILD)/live.wasm
	@$(PACK) $< >$@
# page.html becomes page_html, an array of its bytes and a 0, and page_html_size.
array = $(subst .,_,$(basename $(@F)))
$(PAGE_AT)/page.html.c: examples/explain/page/page.html
$(PAGE_AT)/page.css.c: $(STYLES)
$(PAGE_AT)/page.js.c: $(SCRIPTS)
# A page is sent and saved, so comments and empty lines stay here: an eighth of the scripts.
READ = cat
$(PAGE_AT)/page.css.c $(PAGE_AT)/page.js.c: READ = awk '/^ *\/\*/ { within = 1 } !within && NF { sub(/ *\/\* [^*]* \*\/$$/, ""); print } /\*\/$$/ { within = 0 }'
$(MODULE:.o=.c): examples/explain/live.wasm.gz
$(PAGE:.o=.c) $(MODULE:.o=.c): examples/explain/explain.mk
	@mkdir -p $(@D); (echo '#include <stddef.h>'; \
	    echo 'extern const unsigned char $(array)[]; extern const size_t $(array)_size;'; \
	    echo 'const unsigned char $(array)[] = {'; \
	    $(READ) $(filter-out %.mk,$^) | od -An -v -tu1 | sed 's/[0-9][0-9]*/&,/g'; \
	    echo '0}; const size_t $(array)_size = sizeof $(array) - 1;') >$@
$(SOURCED:.o=.c): examples/explain/cut.awk $(CUT)
	@mkdir -p $(@D); LC_ALL=C awk -f $^ >$@
$(PAGE) $(MODULE) $(SOURCED): %.o: %.c $(BUILD)/flags
	$(compile)
$(SOURCED): MORE = -I.

# What is committed is used, whatever the sources are by now; only where it is gone is it made.
examples/explain/live.wasm.gz:
	@$(MAKE) --no-print-directory live-module && cp $(BUILD)/live.wasm.gz $@
$(BUILD)/flags.wasm: note = $(WASM_CC) $(WASM_FLAGS) $(WASM_LINK) $(PACK) $(WASM)

live: ## examples/explain/live.wasm.gz, the library in the page of explain, of these sources (finds or installs clang)
	@sh tests/tools/install-wasm '$(WASM_CC)' '$(WASI)'
	@$(MAKE) --no-print-directory live-module
	@cmp -s $(BUILD)/live.wasm.gz examples/explain/live.wasm.gz || cp $(BUILD)/live.wasm.gz examples/explain/live.wasm.gz
	@$(MAKE) --no-print-directory $(BUILD)/explain
live-module: $(BUILD)/live.wasm.gz
.PHONY: live live-module
