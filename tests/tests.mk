# tests.mk - the suites, the checks, the fuzzers and the benchmarks. tests/README.md says what each is for.

# The suites of a folder of tests/suites; the programs are in one folder, build/tests.
ROOMS    = library programs course
suites_of = $(patsubst tests/suites/$(1)/%.c,$(BUILD)/tests/%$(EXE),$(wildcard tests/suites/$(1)/test_*.c))
# Suites that need the linker's --wrap, which macOS's linker does not have.
LEFT_OUT = $(if $(MACOS),$(patsubst %,$(BUILD)/tests/test_%,alloc_failure allocator attention files threads))
# On Windows, those that run no programs and start no processes.
ON_WINDOWS = attention corners empty extremes golden inspect kernels loops nn ops print products random seeds tape tensor training
ALL_TESTS  = $(filter-out $(LEFT_OUT),$(sort $(foreach room,$(ROOMS),$(call suites_of,$(room)))))
TESTS    = $(if $(WINDOWS),$(patsubst %,$(BUILD)/tests/test_%.exe,$(ON_WINDOWS)),$(ALL_TESTS))
# The suites that run as WebAssembly, with stand-ins for Check and for what a C library lacks there.
LIVE_TESTS  = $(patsubst %,$(BUILD)/live/test_%.wasm,attention corners empty extremes function golden inspect kernels loops nn \
                ops print random seeds tape tensor training)
LIVE_SYSTEM = $(patsubst %,$(BUILD)/obj/wasm/tests/%.o,suites/common suites/library/common_kernels live/check live/system)
HELPERS  = $(call objects,$(if $(WINDOWS),$(patsubst %,tests/suites/%.c,common common_windows library/common_kernels),\
             $(filter-out %_windows.c %_live.c,$(call files,tests/suites/common*.c tests/suites/*/common*.c))))
HOOKED   = $(BUILD)/obj/tensor/fast/pool.hooks.o # pool.c for the tests; it replaces the library's
BENCHES  = $(patsubst tests/%.c,$(BUILD)/%,\
             $(filter-out %/common.c %/common_peak.c,$(call files,tests/bench/*.c)))
MEASURE  = $(call objects,tests/bench/common.c) \
           $(foreach isa,$(ISAS),$(BUILD)/obj/tests/bench/common_peak.$(isa).o)
BESIDE   = $(patsubst %,$(BUILD)/tests/%,differential/runner tools/digits)
TARGETS  = $(patsubst tests/%.c,$(BUILD)/%,$(call files,tests/fuzz/target_*.c))
# The same, with a program of our own in libFuzzer's place.
FUZZERS  = $(subst /target_,/corrupt_,$(TARGETS))

tests: suites
	@echo 'The suites are built, in $(BUILD)/tests: make test runs them'

# ---- how to build them ----------------------------------------------------------------------------------------

$(BUILD)/obj/%.hooks.o: %.c $(BUILD)/flags
	$(compile) -DTEST_HOOKS
define suite_rule
$(filter $(TESTS),$(call suites_of,$(1))): $(BUILD)/tests/%$(EXE): $(BUILD)/obj/tests/suites/$(1)/%.o
endef
$(foreach room,$(ROOMS),$(eval $(call suite_rule,$(room))))
$(BESIDE): $(BUILD)/%: $(BUILD)/obj/%.o
$(TESTS) $(BESIDE): $(HELPERS) $(HOOKED) $(BUILD)/libtapehead.a
	$(link) $(WRAP) $$(pkg-config --libs check) $(LIBS)
$(patsubst %,$(BUILD)/tests/test_%,attention_map charlm heads pronounce): $(COMMON)
$(foreach program,charlm heads pronounce,$(eval $(BUILD)/tests/test_$(program): $(call parts,$(program))))
$(patsubst %,$(BUILD)/tests/test_%,again alloc_failure experiments explain loop nudge play probe rule rule_box rule_card sources steps): \
    $(COMMON) $(LESSONS)
$(patsubst %,$(BUILD)/tests/test_%,again loop nudge play probe rule rule_box rule_card sources): $(call objects,tests/suites/course/common_live.c)
# json.c reads UTF-8.
JSON     = $(call objects,examples/explain/page/json.c examples/common/utf8.c)
$(BUILD)/tests/test_inspect$(EXE): $(JSON)
$(BUILD)/tests/test_exercises $(BUILD)/tests/test_forgeries: $(JSON)
$(BUILD)/tests/test_forgeries: $(call objects,examples/exercises/marker/process.c examples/exercises/marker/filter.c)
$(BUILD)/tests/test_scratch: $(JSON)
$(BUILD)/tests/test_answers $(BUILD)/tests/test_backwards: $(call objects,$(MARKER)) $(COMMON) $(JSON) $(TEXTS)
$(BUILD)/tests/test_programs: $(JSON)
$(BENCHES): $(MEASURE)
$(BENCHES) $(BUILD)/page/llama: $(BUILD)/%: $(BUILD)/obj/tests/%.o $(BUILD)/libtapehead.a
	$(link) $(WRAP) $(LIBS)

$(TARGETS) $(FUZZERS): $(BUILD)/obj/tests/fuzz/common.o $(COMMON) $(BUILD)/libtapehead.a
$(TARGETS): $(BUILD)/%: $(BUILD)/obj/tests/%.o
	$(link) -fsanitize=fuzzer $(WRAP) $(LIBS)
$(FUZZERS): $(BUILD)/fuzz/corrupt_%: $(BUILD)/obj/tests/fuzz/target_%.o $(BUILD)/obj/tests/fuzz/corrupt.o
	$(link) $(WRAP) $(LIBS)

# The time of a suite is that of the library and of the programs: all are compiled without optimization but those whose
# own loops are the work.
LOOPS    = $(patsubst %,tests/suites/library/test_%.c,attention exponents kernels products)
$(call objects,$(filter-out $(LOOPS),$(wildcard tests/suites/*.c tests/suites/*/*.c))): SPEED = $(QUICK)

WITH_CHECK = $(call objects,$(wildcard tests/suites/*/test_*.c)) $(BESIDE:$(BUILD)/%=$(BUILD)/obj/%.o) $(HELPERS) \
             $(call objects,tests/suites/course/common_live.c tests/fuzz/target_api.c)
$(WITH_CHECK): MORE = -DTEST_HOOKS $(if $(COUNTED),,-DNOTHING_COUNTED) $(if $(WINDOWS),-include tests/suites/common_windows.h) $$(pkg-config --cflags check | sed 's/-I/-isystem /g')
$(WITH_CHECK): | have-check
$(BUILD)/obj/tests/suites/course/test_backwards.o: MORE += -I. -I$(dir $(FORWARDS))
$(BUILD)/obj/tests/suites/course/test_backwards.o: $(FORWARDS)
$(BUILD)/obj/tests/suites/library/test_stacks.o: MORE += $(if $(findstring -O0,$(CFLAGS)),-DNOT_OPTIMIZED)
# --wrap replaces functions that the library calls: tensor_fail, so that a test sees each error
# message; tensor_cache_alloc, so that a test sees what it leaves in use; malloc and others, so that
# a test counts allocations or makes them fail; functions of threads and of files. (glibc also has
# fstat under the name fstat64.) With -flto only calls between parts of the program are replaced, so
# nothing is counted.
COUNTED  = $(if $(findstring -flto,$(CFLAGS)),,-Wl,--wrap=tensor_cache_alloc,--wrap=tensor_cache_free)
WATCHED  = -Wl,--wrap=tensor_fail $(COUNTED)
$(TESTS) $(BESIDE): WRAP = $(if $(MACOS),,$(WATCHED))
$(BUILD)/tests/test_alloc_failure: WRAP += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc \
                                          -Wl,--wrap=aligned_alloc,--wrap=posix_memalign,--wrap=free
$(BUILD)/tests/test_attention$(EXE) $(BUILD)/tests/test_allocator: WRAP += -Wl,--wrap=aligned_alloc,--wrap=free
$(BUILD)/tests/test_allocator: WRAP += -Wl,--wrap=malloc_trim
$(BUILD)/tests/test_threads: WRAP += -Wl,--wrap=pthread_create,--wrap=pthread_mutex_unlock,--wrap=getenv,--wrap=sched_getaffinity $(if $(LINUX),-ldl)
$(BUILD)/tests/test_threads: | $(BUILD)/$(SHARED)
$(BUILD)/tests/test_files: WRAP += -Wl,--wrap=fdopen,--wrap=realloc,--wrap=fstat,--wrap=fstat64 \
                                   -Wl,--wrap=fsync,--wrap=fclose,--wrap=rename
fuzzers  = $(BUILD)/fuzz/target_$(1) $(BUILD)/fuzz/corrupt_$(1)
$(call fuzzers,api): $(BUILD)/obj/tests/suites/common.o $(HOOKED)
$(call fuzzers,api): WRAP = $(WATCHED) $$(pkg-config --libs check)
$(call fuzzers,tape) $(call fuzzers,rule): $(LESSONS)
$(call fuzzers,submissions): $(call objects,examples/exercises/marker/submission.c)
$(call fuzzers,texts): $(call objects,examples/pronounce/dictionary.c) $(call parts,charlm) $(call parts,kernel_regression)
$(call fuzzers,flags): WRAP = -Wl,--wrap=exit
$(BENCHES): WRAP = -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc
$(BENCHES): WRAP += -Wl,--wrap=posix_memalign,--wrap=mmap
$(BUILD)/obj/tests/bench/common_peak.%.o: MORE = -ffp-contract=fast

$(BUILD)/obj/wasm/tests/%.o: WASM_FIRST = -Itests/live -include tests/live/system.h -DTEST_HOOKS -Wno-deprecated-declarations
$(LIVE_TESTS): $(BUILD)/live/%.wasm: $(BUILD)/obj/wasm/tests/suites/library/%.o $(LIVE_SYSTEM) $(WASM)
	$(quiet)echo "  link $@"; mkdir -p $(@D); $(WASM_CC) $(WASM_LINK) $(WATCHED) $(WRAP) $^ -o $@
$(BUILD)/live/test_attention.wasm: WRAP = -Wl,--wrap=aligned_alloc,--wrap=free

# ---- what to do with them -------------------------------------------------------------------------------------

have-check:
	@sh tests/tools/install-check
ifneq ($(filter test suites tests,$(MAKECMDGOALS)),)
$(BUILD)/flags: | have-check # it may ask, so before anything is compiled
endif
suites: $(TESTS)
# Everything that this compiler makes; only clang links libFuzzer's targets.
everything: all suites $(BENCHES) $(BESIDE) $(BUILD)/page/llama $(BUILD)/docs $(BUILD)/failmalloc.so \
            $(call objects,$(call files,tests/fuzz/*.c))
CHOSEN   = $(call chosen,$(TESTS))
# The suites of the library run no program.
TO_RUN   = $(CHOSEN) $(if $(filter-out $(call suites_of,library),$(CHOSEN)),$(EXAMPLES))
test: $(TO_RUN) $(BUILD)/docs ## run every test suite (finds or installs Check and pkg-config)
	@BUILD=$(BUILD) sh tests/tools/run-suites $(CHOSEN)
	@$(BUILD)/docs --check $(LIBRARY)
	$(if $(LEFT_OUT),@echo "left out because this linker has no --wrap: $(notdir $(LEFT_OUT))")

bench: $(BENCHES) ## measure how fast it is
	@for bench in $(BENCHES); do $$bench || exit 1; done

# The library keeps freed memory for the next tensor; without that cache the checkers below see each
# block that is allocated and freed.
SANITIZE = -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all
MEMCHECK = valgrind -q --error-exitcode=9 --leak-check=full \
           --errors-for-leak-kinds=definite,possible
# A test is no process of its own here: the sanitizer would look for leaks at the end of each, and does so once.
sanitize: sanitize-gcc sanitize-clang ## the suites under address and undefined-behaviour sanitizers
sanitize-%: FORCE
	@CK_FORK=no TAPEHEAD_CACHE=0 $(MAKE) --no-print-directory \
	    CC=$* BUILD=$(BUILD)/$@ CFLAGS='$(SANITIZE)' test
# TAPEHEAD_DEBUG turns the cache off, so that the sanitizer sees every use of freed memory.
debug: ## the library as an archive that catches a program's mistakes
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/debug \
	    CFLAGS='-O1 -g -fno-omit-frame-pointer -fsanitize=address -DTAPEHEAD_DEBUG' $(BUILD)/debug/libtapehead.a
	@echo 'Link a program with it like this, and run it:'
	@echo '    $(CC) -g -fsanitize=address -I. program.c $(BUILD)/debug/libtapehead.a -lm -pthread -o program'
# IN_PARTS=1: the suites' small tensors are shared by the threads as large ones are. A child of
# test_threads has a pool of its own, which this sanitizer must be told to allow.
tsan: ## the suites under the thread sanitizer
	@IN_PARTS=1 TAPEHEAD_NUM_THREADS=3 TAPEHEAD_CACHE=0 TSAN_OPTIONS=die_after_fork=0 \
	    $(MAKE) --no-print-directory BUILD=$(BUILD)/tsan CFLAGS='-O1 -g -fsanitize=thread' test
# The marker filters the system calls of a student's program from before its start, and valgrind needs some there.
WITH_MARKER = $(patsubst %,$(BUILD)/tests/test_%,answers exercises forgeries scratch)
valgrind: $(TO_RUN) ## the suites under valgrind, which knows no AVX-512
	@CK_FORK=no CK_EXCLUDE_TAGS=long TAPEHEAD_CACHE=0 TAPEHEAD_ISA=avx2 RUNNER='$(MEMCHECK)' BUILD=$(BUILD) \
	    sh tests/tools/run-suites $(filter-out $(WITH_MARKER),$(CHOSEN))

# The library of sanitize-gcc is built once for both.
fuzz: ## 10,000 corrupted inputs for each target in tests/fuzz/, under gcc's sanitizers
	@TAPEHEAD_CACHE=0 $(MAKE) --no-print-directory CC=gcc BUILD=$(BUILD)/sanitize-gcc \
	    CFLAGS='$(SANITIZE)' run-fuzz
run-fuzz: $(FUZZERS)
	@for fuzzer in $^; do echo "$$fuzzer"; $$fuzzer >$$fuzzer.log 2>&1 || { tail -30 $$fuzzer.log; exit 1; }; done
# libFuzzer follows branches and comparisons, except in the loops of the kernels.
GUIDED = -fsanitize=fuzzer-no-link -fsanitize-coverage-ignorelist=tests/fuzz/uncovered.txt
# The inputs that libFuzzer finds stay in $(BUILD)/libfuzzer/corpus, and the next run begins with
# them.
fuzz-libfuzzer: ## RUNS inputs (100,000) of libFuzzer's for each target in tests/fuzz/ (needs clang)
	@$(MAKE) --no-print-directory CC=clang BUILD=$(BUILD)/libfuzzer \
	    CFLAGS='$(SANITIZE) $(GUIDED)' run-libfuzzer
run-libfuzzer: $(TARGETS)
	@printf '%s\n' $^ | xargs -P "$$(sh tests/tools/cores)" -I '{}' sh tests/fuzz/run-target '{}' $(or $(RUNS),100000)

BROWSER = chromium
PAGES   = explain additive pronounce llama
page-test: $(BUILD)/explain $(BUILD)/pronounce $(BUILD)/page/llama ## the page of explain in headless Chromium; BROWSER=firefox: in Firefox
	@$(BUILD)/explain --page $(BUILD)/explain.html >/dev/null
	@$(BUILD)/explain --lesson 6 --additive --page $(BUILD)/additive.html >/dev/null
	@$(BUILD)/explain --lesson 2 --page $(BUILD)/lesson.html >/dev/null
	@$(BUILD)/pronounce --quiet --show taxi --hidden 16 --steps 100 --explain $(BUILD)/pronounce.html >/dev/null || [ $$? = 1 ]
	@$(BUILD)/page/llama >$(BUILD)/llama.json
	@$(BUILD)/explain --tape $(BUILD)/llama.json --page $(BUILD)/llama.html >/dev/null
	@python3 tests/page/test --$(BROWSER) $(PAGES:%=$(BUILD)/%.html)

live-test: ## the WebAssembly module against the program, and suites built for it (needs node)
	@sh tests/tools/install-wasm '$(WASM_CC)' '$(WASI)'
	@$(MAKE) --no-print-directory run-live-test
run-live-test: $(call chosen,$(LIVE_TESTS)) $(BUILD)/explain $(BUILD)/live.wasm.gz
	@cmp -s $(BUILD)/live.wasm.gz examples/explain/live.wasm.gz || echo 'The page has a module of other sources: make live'
	@sh tests/tools/have node:nodejs
	@RUNNER='node tests/live/run' sh tests/tools/run-suites $(call chosen,$(LIVE_TESTS))
	@$(BUILD)/explain --page $(BUILD)/explain.html >/dev/null
	@node tests/live/test $(BUILD)/explain $(BUILD)/explain.html

# clang's and gcc's sanitizers have a malloc of their own, so failmalloc needs a plain build.
failmalloc: $(EXAMPLES) $(BUILD)/failmalloc.so ## every allocation of every program fails once (glibc)
	@sh tests/tools/have python3
	@python3 tests/checks/failmalloc "$(BUILD)"
$(BUILD)/failmalloc.so: $(BUILD)/obj/tests/tools/failmalloc.o $(BUILD)/sources
	$(link) -shared $(LIBS)

coverage: ## which lines of the library the suites reach (needs gcovr)
	@sh tests/tools/have gcovr
	@rm -rf $(BUILD)/coverage # counts of older code, about which the programs would complain
	@GCOV_ERROR_FILE=/dev/null $(MAKE) --no-print-directory BUILD=$(BUILD)/coverage CFLAGS='-O0 -g --coverage' test
	@gcovr --gcov-ignore-parse-errors --root . --object-directory $(BUILD)/coverage -f tensor/ -f autograd/ -f nn/

mutants: have-check ## do the suites notice 100 small mistakes? Takes an hour or two (needs Python and gcov)
	@sh tests/tools/have python3 gcov:gcc git
	@BUILD=$(BUILD) python3 tests/tools/mutants $(MUTANTS)

thorough: ## for a release: what .ci/run shortens or leaves out, some hours; goes on where it was stopped. PARTS=tsan is this part alone
	@sh tests/tools/thorough $(BUILD) $(PARTS)

TIDY = $(patsubst %,$(BUILD)/lint/%.ok,$(filter-out tests/% tensor/files/win32.c examples/common/windows.c $(FORMS)/% \
         examples/exercises/marker/harness.c examples/exercises/marker/scratch_exercises.c,$(filter %.c,$(SOURCES))))
lint: have-lint lint-headers $(TIDY) ## formatting, clang-tidy, layers, links, headers alone, long functions, statements
	clang-format --dry-run -Werror $(SOURCES)
	sh tests/checks/layers $(CORE_FOLDERS)
	perl tests/checks/links
	sh tests/checks/functions $(SOURCES)
	python3 tests/checks/statements $(SOURCES)
lint-headers: have-lint # a minute, one after the other: beside clang-tidy
	sh tests/checks/headers $(FLAGS)
have-lint:
	@sh tests/tools/have clang-format clang-tidy gcc clang g++ ctags:universal-ctags python3
# The analyzer looks at 75,000 states of a function, not 225,000: in a third of the time it found the same of 163 leaks
# that were planted at the ends of functions.
STATES = -Xclang -analyzer-config -Xclang max-nodes=75000
$(BUILD)/lint/%.c.ok: %.c .clang-tidy $(filter %.h %.inc,$(SOURCES)) $(EDITED) | have-lint
	@echo "  tidy $<"; mkdir -p $(@D); \
	clang-tidy --quiet $< -- $(FLAGS) -I$(dir $(FORWARDS)) -DISA=baseline $(STATES) >$@ 2>&1 || { cat $@; exit 1; }
fmt: ## format the sources in place
	clang-format -i $(SOURCES)

# CHECK=1 changes nothing, and fails when a page is stale.
docs: $(BUILD)/docs $(BUILD)/explain ## rewrite the tables of autograd/README.md, nn/functions.html, the picture of README.md
	@$< $(if $(CHECK),--check) $(LIBRARY)
	@sh tests/tools/save-picture $(BUILD)/explain $(if $(CHECK),--check)
$(BUILD)/docs: $(call objects,tests/tools/docs.c tests/tools/functions.c) $(BUILD)/libtapehead.a
	$(link) $(LIBS)

size: ## lines of code per folder: the core, the rest of the library, examples, tests
	@sh tests/tools/print-size $(CORE_FOLDERS)

.PHONY: tests suites everything test bench sanitize debug tsan valgrind fuzz run-fuzz fuzz-libfuzzer run-libfuzzer page-test \
        live-test run-live-test failmalloc coverage mutants thorough lint lint-headers fmt docs size have-check have-lint
