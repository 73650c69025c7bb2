# make         the library and the examples    make demo    see them work
# make test    the test suites                 make help    everything else
#
# Every source is found by its folder: to add a file, add the file. V=1 shows the commands,
# DEV=1 makes warnings errors, CC=clang uses clang.

VERSION := $(shell sed -n 's/.*define TAPEHEAD_VERSION "\([^"]*\)".*/\1/p' tensor/tensor.h)
BUILD   = build
# CPPFLAGS and CFLAGS are for each call of the compiler, LDFLAGS and LDLIBS for each link, LIBDIR,
# INCLUDEDIR and DESTDIR for install.
CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
LIBS    = -lm $(LDLIBS)
# These goals build nothing: they need no folder to write in and no compiler.
BUILDS := $(filter-out clean fmt help uninstall,$(or $(MAKECMDGOALS),all))
quoted  = '$(subst ','\'',$(1))'

# make splits names at spaces, so a BUILD with spaces is reached by a link whose name has none.
ASKED  := $(BUILD)
FOLDER := $(call quoted,$(ASKED))
LINK   := true
ifneq ($(firstword $(ASKED)),$(ASKED))
override BUILD := .build-$(shell printf %s $(FOLDER) | cksum | tr -dc 0-9)
LINK   := [ "$$(readlink $(BUILD))" = $(FOLDER) ] || ln -sfn $(FOLDER) $(BUILD)
endif
ifeq ($(strip $(ASKED)),)
$(error BUILD is empty: it must name the folder for what is built)
endif
ifneq ($(shell here=$$(pwd -P)/; CDPATH= cd $(FOLDER) 2>/dev/null || exit; there=$$(pwd -P); \
         case $$here in ("$${there%/}"/*) echo above;; esac; ls README.md *.[ch] 2>/dev/null),)
$(error BUILD=$(ASKED): there are sources in this folder, and make clean would remove them)
endif
WARN    = -Wall -Wextra -Wpedantic -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wvla \
          -Wdouble-promotion $(if $(DEV),-Werror)

# The sources need these flags, whatever CFLAGS says: C11, POSIX with M_PI and realpath, files of
# more than 2 GB, and options with which the compiler changes no digit of a result. A product and a
# sum are fused only where the code says so.
FLAGS   = $(TUNE) $(CPPFLAGS) $(CFLAGS) -std=c11 $(SYSTEM) -pthread -fPIC \
          -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-asynchronous-unwind-tables \
          -ffile-prefix-map="$$PWD"=. $(LOCAL) $(WARN)

# The machine and the system for which this compiler works: "x86_64-linux-gnu",
# "arm64-apple-darwin23.6.0"; 127 if there is no such command.
TARGET := $(shell { $(CC) -dumpmachine; } 2>/dev/null || echo $$?)
LINUX   = $(findstring linux,$(TARGET))
X86_64  = $(filter x86_64-% amd64-%,$(TARGET))
AARCH64 = $(filter aarch64-% arm64-%,$(TARGET))
MACOS   = $(findstring -darwin,$(TARGET))$(findstring -macos,$(TARGET))

fails   = $(shell ($(1)) 2>/dev/null || echo yes)
ifneq ($(BUILDS),)
ifneq ($(filter 126 127,$(TARGET)),)
$(error CC=$(CC): there is no such compiler here: install gcc or clang, or name yours, as CC=gcc-12 does)
endif
ifneq ($(call fails,mkdir -p $(FOLDER) && [ -w $(FOLDER) ]),)
$(error BUILD=$(ASKED): this folder cannot be made, or nothing can be written in it)
endif
ifneq ($(call fails,$(LINK)),)
$(error BUILD=$(ASKED): make needs a link to this name without its spaces, and cannot make one in $(CURDIR))
endif
endif

# On macOS and FreeBSD the headers declare everything if no standard is asked for.
SYSTEM  = $(if $(LINUX),-D_XOPEN_SOURCE=700 -D_FILE_OFFSET_BITS=64)

# Flags that some compilers do not take, or that only some machines need. Functions of the shared
# library call each other directly. Floats are not computed in wider types, as i386's first
# floating-point unit and gcc for s390x would do. gcc's usual tuning for x86 clears a struct by
# rep stos, which takes a tenth of a small op's time.
takes   = $(shell $(CC) $(1) -Werror -E -xc /dev/null >/dev/null 2>&1 && echo '$(1)')
LOCAL  := $(call takes,-fno-semantic-interposition) \
          $(if $(filter i386-% i486-% i586-% i686-%,$(TARGET)),-msse2 -mfpmath=sse) \
          $(if $(filter s390x-%,$(TARGET)),$(call takes,-fexcess-precision=fast))
TUNE   := $(if $(findstring -march,$(CFLAGS))$(findstring -mtune,$(CFLAGS)),,\
            $(if $(X86_64),$(call takes,-mtune=icelake-server)))

# The kernels are compiled once per instruction set, and dispatch.c chooses when the first kernel is
# needed. NEON is in every AArch64.
ISAS     = $(if $(AARCH64),neon,baseline $(if $(X86_64),avx2 avx512))
AVX2     = -mavx2 -mfma
AVX512   = $(AVX2) -mavx512f -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512

# explain's page computes by the library as a WebAssembly module, if clang can make one here. LIVE=
# leaves the module out, and the page shows recorded numbers. WASI is the folder of the C library
# for WebAssembly.
WASM_CC  = clang
WASI     = /usr
ifeq ($(origin LIVE),undefined)
LIVE    := $(shell tests/tools/have-wasm '$(WASM_CC)' '$(WASI)' && echo yes)
endif
# Without -nostdlibinc clang would take headers of this system. A product and a sum are never fused,
# as in the baseline kernels of x86-64: float32 has the same digits. All browsers have had vectors of
# 128 bits (simd128) since 2023; with them recall is trained three times as fast.
WASM_FLAGS = $(WASM_FIRST) --target=wasm32-wasi --sysroot=$(WASI) -nostdlibinc -isystem $(WASI)/include/wasm32-wasi \
             -Iexamples/explain/wasm -iquote tensor/kernels -msimd128 -Os -std=c11 -D_XOPEN_SOURCE=700 \
             -DISA=baseline -DHAVE_baseline -ffp-contract=off -fno-math-errno -fno-trapping-math \
             -ffile-prefix-map="$$PWD"=. $(WARN) -Wno-psabi -Wno-pass-failed
# No -O here: with -O clang runs any wasm-opt that clang finds.
WASM_LINK  = --target=wasm32-wasi --sysroot=$(WASI) -Wl,--stack-first -Wl,-z,stack-size=1048576
REACTOR    = -mexec-model=reactor -s $(EXPORTED:%=-Wl,--export=%)
EXPORTED   = live_request live_answer live_tensors
PACK       = gzip -9n

# The shared library: programs look for the name with the version without its last number, 0.1 for
# 0.1.0. macOS writes the version before the suffix, and looks for a library whose name begins with
# @rpath in the folders that a program gives with -rpath. nodelete: dlclose does not unload it, since
# a thread that ends later calls the allocator. (macOS never unloads a library with thread-local
# variables.)
ABI      = $(basename $(VERSION))
ifeq ($(MACOS),)
SHARED   = libtapehead.so
SONAME   = $(SHARED).$(ABI)
FULLNAME = $(SHARED).$(VERSION)
SMALLER  = -Wl,-z,noseparate-code # FreeBSD's linker does so anyway
SHARING  = -shared $(if $(LINUX),$(SMALLER)) -Wl,-z,now,-z,nodelete,-Bsymbolic,-soname,$(SONAME) \
           -Wl,--version-script,$(BUILD)/exports.map,--no-undefined
else
SHARED   = libtapehead.dylib
SONAME   = libtapehead.$(ABI).dylib
FULLNAME = libtapehead.$(VERSION).dylib
SHARING  = -dynamiclib -install_name @rpath/$(SONAME) -Wl,-exported_symbols_list,$(BUILD)/exports.map
endif

# What there is to build ---------------------------------------------------------------------

KERNELS  = $(patsubst %,tensor/fast/%.c,fast matmul attention_tiles) # all else is compiled once
# What the core does where there is no other ring.
ALONE    = tensor/alone.c autograd/ops/composed_attention.c
LIBRARY  = $(sort $(filter-out $(KERNELS) $(ALONE),$(wildcard tensor/*.c tensor/*/*.c \
             autograd/*.c autograd/*/*.c nn/*.c nn/*/*.c)))
HEADERS  = tensor/tensor.h autograd/autograd.h nn/nn.h
SOURCES  = $(wildcard $(foreach folder,tensor autograd nn examples tests,\
           $(folder)/*.[ch] $(folder)/*.inc $(folder)/*/*.[ch] $(folder)/*/*.inc))

objects  = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
SMALL    = $(if $(filter avx2,$(ISAS)),$(KERNELS:%.c=%.baseline.c)) autograd/gradcheck.c \
           $(patsubst %,tensor/%.c,buffer dict file npy number print replace safetensors text) nn/checkpoint.c nn/init.c
OBJECTS  = $(call objects,$(LIBRARY)) \
           $(foreach isa,$(ISAS),$(patsubst %.c,$(BUILD)/obj/%.$(isa).o,$(KERNELS)))
EXAMPLES = $(patsubst examples/%.c,$(BUILD)/%,$(wildcard examples/*.c))
# Suites that need the linker's --wrap, which macOS's linker does not have.
LEFT_OUT = $(if $(MACOS),$(patsubst %,$(BUILD)/tests/test_%,alloc_failure allocator attention files threads))
TESTS    = $(filter-out $(LEFT_OUT),$(patsubst tests/suites/%.c,$(BUILD)/tests/%,$(wildcard tests/suites/test_*.c)))
COMMON   = $(call objects,$(wildcard examples/common/*.c))
# explain's lessons, and its page: the sources of the page are arrays of the program.
PAGE     = $(patsubst %,$(BUILD)/obj/examples/explain/%.o,page.html page.css page.js controls.js live.js play.js)
LESSONS  = $(call objects,$(wildcard examples/explain/*.c examples/recall/*.c)) $(PAGE)
# The module: all of the library but threads and the writing of files, the lessons, and recall.
WASM     = $(patsubst %.c,$(BUILD)/obj/wasm/%.o,$(KERNELS) examples/explain/wasm/pool.c \
             $(filter-out tensor/fast/pool.c tensor/files/replace.c,$(LIBRARY)) \
             $(filter-out $(patsubst %,examples/explain/%.c,check html picture text),$(wildcard examples/explain/*.c)) \
             examples/recall/model.c examples/common/attention_map.c)
# The suites that run as WebAssembly, with stand-ins for Check and for what a C library lacks there.
LIVE_TESTS  = $(patsubst %,$(BUILD)/live/test_%.wasm,attention corners empty extremes golden inspect kernels loops nn \
                ops print random seeds tape tensor training)
LIVE_SYSTEM = $(patsubst %,$(BUILD)/obj/wasm/tests/%.o,suites/common suites/common_kernels live/check live/system)
MODULE   = $(BUILD)/obj/examples/explain/live.wasm.o
RECORDER = $(call objects,$(patsubst %,examples/explain/%.c,recording html json)) $(PAGE)
HELPERS  = $(call objects,$(wildcard tests/suites/common*.c))
HOOKED   = $(BUILD)/obj/tensor/fast/pool.hooks.o # pool.c for the tests; it replaces the library's
BENCHES  = $(patsubst tests/%.c,$(BUILD)/%,\
             $(filter-out %/common.c %/common_peak.c,$(wildcard tests/bench/*.c)))
MEASURE  = $(call objects,tests/bench/common.c) \
           $(foreach isa,$(ISAS),$(BUILD)/obj/tests/bench/common_peak.$(isa).o)
FUZZERS  = $(BUILD)/fuzz/files
BESIDE   = $(BUILD)/tests/differential/runner
TARGETS  = $(patsubst tests/%.c,$(BUILD)/%,$(wildcard tests/fuzz/target_*.c))

all: library $(EXAMPLES) ## the library and the examples
library: $(BUILD)/libtapehead.a $(BUILD)/$(SHARED) ## the library alone

# The name of a folder is a word, too, and make would say "Nothing to be done".
tensor autograd nn: library
	@echo 'tensor, autograd and nn are one library: $(BUILD)/libtapehead.a and $(BUILD)/$(SHARED)'
examples: $(EXAMPLES)
	@echo 'The programs are $(EXAMPLES)'
tests: suites
	@echo 'The suites are built, in $(BUILD)/tests: make test runs them'
.PHONY: tensor autograd nn examples tests

# How to build it ----------------------------------------------------------------------------

quiet   = $(if $(V),,@)
compile = $(quiet)echo "  cc   $@"; mkdir -p $(@D); $(CC) $(FLAGS) $(SPEED) $(STACK) $(MORE) -MMD -MP -c $< -o $@
link    = $(quiet)echo "  link $@"; mkdir -p $(@D); $(CC) $(FLAGS) $(LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) -o $@

$(BUILD)/obj/%.o: %.c $(BUILD)/flags
	$(compile)
$(BUILD)/obj/%.baseline.o: %.c $(BUILD)/flags
	$(compile) -DISA=baseline -Wno-psabi -Wno-pass-failed
$(BUILD)/obj/%.neon.o: %.c $(BUILD)/flags
	$(compile) -DISA=neon -Wno-psabi -Wno-pass-failed
$(BUILD)/obj/%.avx2.o: %.c $(BUILD)/flags
	$(compile) -DISA=avx2 $(AVX2) -Wno-psabi -Wno-pass-failed
$(BUILD)/obj/%.avx512.o: %.c $(BUILD)/flags
	$(compile) -DISA=avx512 $(AVX512) -Wno-psabi -Wno-pass-failed
$(BUILD)/obj/%.hooks.o: %.c $(BUILD)/flags
	$(compile) -DTEST_HOOKS
# -O3 makes loops over elements loops of vectors. Code that no step of training runs is compiled for
# size, and so are kernels that only the oldest CPUs need.
$(BUILD)/obj/tensor/fast/%.o $(BUILD)/obj/tensor/kernels/%.o: SPEED = $(if $(filter -O2,$(CFLAGS)),-O3)
$(BUILD)/obj/tensor/kernels/plain.o: SPEED =
$(BUILD)/obj/tensor/math/loop.o: SPEED = $(if $(filter -O2,$(CFLAGS)),-O3)
$(call objects,$(SMALL)): SPEED = $(if $(filter -O2,$(CFLAGS)),-Os)
# In matmul.c the compiler may fuse: the sums of a product are chains of fused multiply-adds. With a
# sanitizer nothing is fused, because its checks would stand between some products and sums.
$(BUILD)/obj/tensor/fast/matmul.%.o: MORE = $(if $(findstring sanitize,$(CFLAGS)),,-ffp-contract=fast)
$(BUILD)/obj/tensor/fast/dispatch.o: MORE = $(ISAS:%=-DHAVE_%)
# The library runs in threads with little stack (tests/suites/test_stacks.c); at -O0 each temporary has a place
# of its own there.
$(OBJECTS): STACK = $(if $(DEV),$(if $(filter -O1 -O2 -O3 -Os,$(CFLAGS)),-Wframe-larger-than=16384))

$(BUILD)/libtapehead.a: $(OBJECTS) $(BUILD)/sources
	@echo "  ar   $@"; rm -f $@; $(AR) rcs $@ $(OBJECTS)
$(BUILD)/$(SHARED): $(OBJECTS) $(BUILD)/sources $(BUILD)/exports.map
	$(link) $(SHARING) $(LIBS)
	@ln -sf $(@F) $(BUILD)/$(SONAME)
$(EXAMPLES): $(BUILD)/%: $(BUILD)/obj/examples/%.o $(COMMON) $(BUILD)/libtapehead.a
	$(link) $(LIBS)
$(BUILD)/explain: $(LESSONS) $(MODULE)
$(addprefix $(BUILD)/,recall reverse heads charlm): $(RECORDER)
$(BUILD)/recall: $(call objects,examples/recall/model.c)
$(TESTS): $(BUILD)/tests/%: $(BUILD)/obj/tests/suites/%.o
$(BESIDE): $(BUILD)/%: $(BUILD)/obj/%.o
$(TESTS) $(BESIDE): $(HELPERS) $(HOOKED) $(BUILD)/libtapehead.a
	$(link) $(WRAP) $$(pkg-config --libs check) $(LIBS)
$(BUILD)/tests/test_attention_map $(BUILD)/tests/test_charlm $(BUILD)/tests/test_heads: $(COMMON)
$(BUILD)/tests/test_explain $(BUILD)/tests/test_play: $(COMMON) $(LESSONS)
$(BUILD)/tests/test_inspect: $(BUILD)/obj/examples/explain/json.o
$(BUILD)/tests/test_programs: $(call objects,examples/explain/json.c examples/explain/check.c)
$(BENCHES): $(MEASURE)
$(BENCHES) $(FUZZERS): $(BUILD)/%: $(BUILD)/obj/tests/%.o $(BUILD)/libtapehead.a
	$(link) $(WRAP) $(LIBS)

$(TARGETS): $(BUILD)/%: $(BUILD)/obj/tests/%.o $(BUILD)/obj/tests/fuzz/common.o $(COMMON) $(BUILD)/libtapehead.a
	$(link) -fsanitize=fuzzer $(WRAP) $(LIBS)

WITH_CHECK = $(TESTS:$(BUILD)/tests/%=$(BUILD)/obj/tests/suites/%.o) $(BESIDE:$(BUILD)/%=$(BUILD)/obj/%.o) $(HELPERS) \
             $(BUILD)/obj/tests/fuzz/target_api.o
$(WITH_CHECK): MORE = -DTEST_HOOKS $$(pkg-config --cflags check | sed 's/-I/-isystem /g')
$(WITH_CHECK): | have-check
# --wrap replaces functions that the library calls: tensor_fail, so that a test sees each error
# message; malloc and others, so that a test counts allocations or makes them fail; functions of
# threads and of files. (glibc also has fstat under the name fstat64.)
$(TESTS) $(BESIDE): WRAP = $(if $(MACOS),,-Wl,--wrap=tensor_fail)
$(BUILD)/tests/test_alloc_failure: WRAP += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc \
                                          -Wl,--wrap=aligned_alloc,--wrap=posix_memalign,--wrap=free
$(BUILD)/tests/test_attention $(BUILD)/tests/test_allocator: WRAP += -Wl,--wrap=aligned_alloc,--wrap=free
$(BUILD)/tests/test_allocator: WRAP += -Wl,--wrap=malloc_trim
$(BUILD)/tests/test_threads: WRAP += -Wl,--wrap=pthread_create,--wrap=pthread_mutex_unlock,--wrap=getenv,--wrap=sched_getaffinity $(if $(LINUX),-ldl)
$(BUILD)/tests/test_threads: | $(BUILD)/$(SHARED)
$(BUILD)/tests/test_files: WRAP += -Wl,--wrap=fdopen,--wrap=realloc,--wrap=fstat,--wrap=fstat64 \
                                   -Wl,--wrap=fsync,--wrap=fclose,--wrap=rename
$(BUILD)/fuzz/target_api: $(BUILD)/obj/tests/suites/common.o $(HOOKED)
$(BUILD)/fuzz/target_api: WRAP = -Wl,--wrap=tensor_fail $$(pkg-config --libs check)
$(BUILD)/fuzz/target_tape: $(LESSONS)
$(BUILD)/fuzz/target_flags: WRAP = -Wl,--wrap=exit
$(BENCHES) $(FUZZERS): WRAP = -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc
$(BENCHES): WRAP += -Wl,--wrap=posix_memalign,--wrap=mmap
$(BUILD)/obj/tests/bench/common_peak.%.o: MORE = -ffp-contract=fast

$(BUILD)/obj/wasm/%.o: %.c $(BUILD)/flags.wasm
	$(quiet)echo "  wasm $@"; mkdir -p $(@D); $(WASM_CC) $(WASM_FLAGS) $(WASM_SPEED) -MMD -MP -c $< -o $@
# -O2 saves a tenth of additive attention's time, and costs 700 bytes.
$(BUILD)/obj/wasm/tensor/fast/fast.o: WASM_SPEED = -O2
$(BUILD)/live.wasm: $(WASM)
	$(quiet)echo "  link $@"; $(WASM_CC) $(WASM_LINK) $(REACTOR) $^ -o $@
# The page unpacks this file. gzip -n stores no name and no time: every build makes the same bytes.
$(BUILD)/live.wasm.gz: $(BUILD)/live.wasm
	@$(PACK) <$< >$@
$(BUILD)/obj/wasm/tests/%.o: WASM_FIRST = -Itests/live -include tests/live/system.h -DTEST_HOOKS -Wno-deprecated-declarations
$(LIVE_TESTS): $(BUILD)/live/%.wasm: $(BUILD)/obj/wasm/tests/suites/%.o $(LIVE_SYSTEM) $(WASM)
	$(quiet)echo "  link $@"; mkdir -p $(@D); $(WASM_CC) $(WASM_LINK) -Wl,--wrap=tensor_fail $(WRAP) $^ -o $@
$(BUILD)/live/test_attention.wasm: WRAP = -Wl,--wrap=aligned_alloc,--wrap=free

# page.html becomes page_html, an array of its bytes and a 0, and page_html_size. live_wasm is empty
# where there is no module.
array = $(subst .,_,$(basename $(@F)))
$(PAGE:.o=.c): $(BUILD)/obj/%.c: %
$(MODULE:.o=.c): $(if $(LIVE),$(BUILD)/live.wasm.gz)
$(PAGE:.o=.c) $(MODULE:.o=.c): $(BUILD)/flags.wasm
	@mkdir -p $(@D); (echo '#include <stddef.h>'; \
	    echo 'extern const unsigned char $(array)[]; extern const size_t $(array)_size;'; \
	    echo 'const unsigned char $(array)[] = {'; cat $(filter-out %/flags.wasm,$^) </dev/null | od -An -v -tu1 | sed 's/[0-9][0-9]*/&,/g'; \
	    echo '0}; const size_t $(array)_size = sizeof $(array) - 1;') >$@
$(PAGE) $(MODULE): %.o: %.c $(BUILD)/flags
	$(compile)

# What the shared library exports: the functions of the public headers, a name per line. A program
# may have functions of its own by any other name.
$(BUILD)/exports: $(HEADERS)
	@mkdir -p $(@D); $(CC) $(CPPFLAGS) $(CFLAGS) -E -P nn/nn.h | grep -oE '[A-Za-z0-9_]+ *\(' | tr -d ' (' | \
	    grep -E '^(tensor|ag|tape|nn)_' | LC_ALL=C sort -u >$@
$(BUILD)/exports.map: $(BUILD)/exports
ifeq ($(MACOS),)
	@(echo '{ global:'; sed 's/$$/;/' $<; echo 'local: *; };') >$@
else
	@sed 's/^/_/' $< >$@
endif

# Files that say what was built, rewritten only if their text changes: after a change of the flags
# all objects are out of date, after a change of the list of objects or of what is linked with them
# all libraries and programs.
$(BUILD)/flags:   note = $(CC) $(FLAGS)
$(BUILD)/sources: note = $(OBJECTS) $(LDFLAGS) $(LIBS)
$(BUILD)/flags.wasm: note = $(if $(LIVE),$(WASM_CC) $(WASM_FLAGS) $(WASM_LINK) $(PACK) $(WASM))
$(BUILD)/flags $(BUILD)/flags.wasm $(BUILD)/sources: FORCE
	@mkdir -p $(@D); echo $(call quoted,$(note)) | cmp -s - $@ || echo $(call quoted,$(note)) >$@

# What to do with it -------------------------------------------------------------------------

demo: all ## see it work: every example, and the pictures that they make
	@tests/tools/run-demo $(BUILD)

live: ## the library as WebAssembly, in the page of explain (finds or installs clang and wasi-libc)
	@tests/tools/install-wasm '$(WASM_CC)' '$(WASI)'
	@$(MAKE) --no-print-directory LIVE=yes $(BUILD)/explain
live-module: $(BUILD)/live.wasm.gz

have-check:
	@tests/tools/install-check
suites: $(TESTS)
test: $(TESTS) $(EXAMPLES) $(BUILD)/docs ## run every test suite (finds or installs Check and pkg-config)
	@BUILD=$(BUILD) tests/tools/run-suites $(TESTS)
	@$(BUILD)/docs --check $(LIBRARY)
	$(if $(LEFT_OUT),@echo "left out because this linker has no --wrap: $(notdir $(LEFT_OUT))")

bench: $(BENCHES) ## measure how fast it is
	@for bench in $(BENCHES); do $$bench || exit 1; done

# The library keeps freed memory for the next tensor; without that cache the checkers below see each
# block that is allocated and freed.
SANITIZE = -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
MEMCHECK = valgrind -q --error-exitcode=9 --leak-check=full \
           --errors-for-leak-kinds=definite,possible
sanitize: sanitize-gcc sanitize-clang ## the suites under address and undefined-behaviour sanitizers
sanitize-%: FORCE
	@TAPEHEAD_CACHE=0 $(MAKE) --no-print-directory \
	    LIVE= CC=$* BUILD=$(BUILD)/$@ CFLAGS='$(SANITIZE)' test
# TAPEHEAD_DEBUG turns the cache off, so that the sanitizer sees every use of freed memory, and
# makes the library check its reference counts.
debug: ## the library as an archive that catches a program's mistakes
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/debug \
	    CFLAGS='-O1 -g -fno-omit-frame-pointer -fsanitize=address -DTAPEHEAD_DEBUG' $(BUILD)/debug/libtapehead.a
	@echo 'Link a program with it like this, and run it:'
	@echo '    $(CC) -g -fsanitize=address -I. program.c $(BUILD)/debug/libtapehead.a -lm -pthread -o program'
# IN_PARTS=1: the suites' small tensors are shared by the threads as large ones are. A child of
# test_threads has a pool of its own, which this sanitizer must be told to allow.
tsan: ## the suites under the thread sanitizer
	@IN_PARTS=1 TAPEHEAD_NUM_THREADS=3 TAPEHEAD_CACHE=0 TSAN_OPTIONS=die_after_fork=0 \
	    $(MAKE) --no-print-directory LIVE= BUILD=$(BUILD)/tsan CFLAGS='-O1 -g -fsanitize=thread' test
valgrind: $(TESTS) $(EXAMPLES) ## the suites under valgrind, which knows no AVX-512
	@CK_FORK=no CK_EXCLUDE_TAGS=long TAPEHEAD_CACHE=0 TAPEHEAD_ISA=avx2 RUNNER='$(MEMCHECK)' BUILD=$(BUILD) \
	    tests/tools/run-suites $(TESTS)

fuzz: ## corrupted files for every reader, under the sanitizers
	@TAPEHEAD_CACHE=0 $(MAKE) --no-print-directory LIVE= BUILD=$(BUILD)/sanitize-fuzz \
	    CFLAGS='$(SANITIZE)' run-fuzz
run-fuzz: $(FUZZERS)
	@for fuzzer in $^; do $$fuzzer || exit 1; done
# libFuzzer follows branches and comparisons, except in the loops of the kernels.
GUIDED = -fsanitize=fuzzer-no-link -fsanitize-coverage-ignorelist=tests/fuzz/uncovered.txt
# The inputs that libFuzzer finds stay in $(BUILD)/libfuzzer/corpus, and the next run begins with
# them.
fuzz-libfuzzer: ## RUNS inputs (100,000) of libFuzzer's for each target in tests/fuzz/ (needs clang)
	@$(MAKE) --no-print-directory LIVE= CC=clang BUILD=$(BUILD)/libfuzzer \
	    CFLAGS='$(SANITIZE) $(GUIDED)' run-libfuzzer
run-libfuzzer: $(TARGETS)
	@for target in $^; do tests/fuzz/run-target $$target $(or $(RUNS),100000) || exit 1; done

BROWSER = chromium
page-test: $(BUILD)/explain ## the page of explain in headless Chromium; BROWSER=firefox: in Firefox
	@$(BUILD)/explain --page $(BUILD)/explain.html >/dev/null
	@$(BUILD)/explain --lesson 6 --additive --page $(BUILD)/additive.html >/dev/null
	@tests/page/test --$(BROWSER) $(BUILD)/explain.html $(BUILD)/additive.html

live-test: ## the WebAssembly module against the program, and suites built for it (needs node)
	@tests/tools/install-wasm '$(WASM_CC)' '$(WASI)'
	@$(MAKE) --no-print-directory LIVE=yes run-live-test
run-live-test: $(LIVE_TESTS) $(BUILD)/explain
	@tests/tools/have node:nodejs
	@RUNNER=tests/live/run tests/tools/run-suites $(LIVE_TESTS)
	@$(BUILD)/explain --page $(BUILD)/explain.html >/dev/null
	@tests/live/test $(BUILD)/explain $(BUILD)/explain.html

# clang's and gcc's sanitizers have a malloc of their own, so failmalloc needs a plain build.
failmalloc: $(EXAMPLES) $(BUILD)/failmalloc.so ## every allocation of every program fails once (glibc)
	@tests/checks/failmalloc "$(BUILD)"
$(BUILD)/failmalloc.so: $(BUILD)/obj/tests/tools/failmalloc.o $(BUILD)/sources
	$(link) -shared $(LIBS)

coverage: ## which lines of the library the suites reach (needs gcovr)
	@tests/tools/have gcovr
	@rm -rf $(BUILD)/coverage # counts of older code, about which the programs would complain
	@$(MAKE) --no-print-directory LIVE= BUILD=$(BUILD)/coverage CFLAGS='-O0 -g --coverage' test
	@gcovr --gcov-ignore-parse-errors --root . --object-directory $(BUILD)/coverage -f tensor/ -f autograd/ -f nn/

mutants: have-check ## do the suites notice 100 small mistakes? Takes an hour or two (needs Python and gcov)
	@tests/tools/have python3 gcov:gcc git
	@BUILD=$(BUILD) tests/tools/mutants $(MUTANTS)

TIDY = $(patsubst %,$(BUILD)/lint/%.ok,$(filter-out tests/%,$(filter %.c,$(SOURCES))))
lint: have-lint $(TIDY) ## formatting, clang-tidy, layers, links, headers alone, long functions, statements
	clang-format --dry-run -Werror $(SOURCES)
	tests/checks/layers
	tests/checks/links
	tests/checks/headers $(FLAGS)
	tests/checks/functions $(SOURCES)
	tests/checks/statements $(SOURCES)
have-lint:
	@tests/tools/have clang-format clang-tidy gcc clang g++ ctags:universal-ctags python3
$(BUILD)/lint/%.c.ok: %.c .clang-tidy $(filter %.h %.inc,$(SOURCES)) | have-lint
	@echo "  tidy $<"; mkdir -p $(@D); \
	clang-tidy --quiet $< -- $(FLAGS) -DISA=baseline >$@ 2>&1 || { cat $@; exit 1; }
fmt: ## format the sources in place
	clang-format -i $(SOURCES)

# CHECK=1 changes nothing, and fails when a page is stale.
docs: $(BUILD)/docs ## rewrite the tables of autograd/README.md
	@$< $(if $(CHECK),--check) $(LIBRARY)
$(BUILD)/docs: $(BUILD)/obj/tests/tools/docs.o $(BUILD)/libtapehead.a
	$(link) $(LIBS)

size: ## lines of code per folder: the core, the other ring, examples, tests
	@tests/tools/print-size

INCLUDE = $(DESTDIR)$(INCLUDEDIR)/tapehead
LIB     = $(DESTDIR)$(LIBDIR)
# A folder as pkg-config knows it: relative to the prefix, if it is below.
relative = $(subst :,,$(subst :$(PREFIX)/,$${prefix}/,:$(1)))
install: library ## into PREFIX (/usr/local), or into LIBDIR and INCLUDEDIR, below DESTDIR
	install -d "$(LIB)/pkgconfig" $(foreach header,$(HEADERS),"$(INCLUDE)/$(dir $(header))")
	install -m 644 $(BUILD)/libtapehead.a "$(LIB)"
	install -m 755 $(BUILD)/$(SHARED) "$(LIB)/$(FULLNAME)"
	ln -sf $(FULLNAME) "$(LIB)/$(SONAME)"
	ln -sf $(SONAME) "$(LIB)/$(SHARED)"
	$(foreach header,$(HEADERS),install -m 644 $(header) "$(INCLUDE)/$(header)" &&) true
	printf '%s\n' $(call quoted,prefix=$(PREFIX)) \
	    $(call quoted,libdir=$(call relative,$(LIBDIR))) \
	    $(call quoted,includedir=$(call relative,$(INCLUDEDIR))) \
	    'Name: tapehead' 'Description: a minimal autograd tensor framework' 'Version: $(VERSION)' \
	    'Cflags: -I"$${includedir}"' 'Libs: -L"$${libdir}" -ltapehead' \
	    $(call quoted,Libs.private: $(LIBS) -pthread) >"$(LIB)/pkgconfig/tapehead.pc"
uninstall: ## remove the installed files
	rm -rf "$(INCLUDE)" "$(LIB)/libtapehead.a" "$(LIB)/pkgconfig/tapehead.pc" \
	    "$(LIB)/$(SHARED)" "$(LIB)/$(SONAME)" "$(LIB)/$(FULLNAME)"

clean: ## remove what was built
	rm -rf $(FOLDER) $(BUILD)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]*:.*## / { printf "%-16s%s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# Work on all cores, unless told otherwise or told to clean first.
ifeq ($(MAKELEVEL)$(filter clean,$(MAKECMDGOALS)),0)
MAKEFLAGS += -j$(shell getconf _NPROCESSORS_ONLN)
endif
FORCE:
.PHONY: all library demo live live-module suites test bench sanitize debug tsan valgrind fuzz run-fuzz fuzz-libfuzzer run-libfuzzer page-test live-test run-live-test failmalloc coverage mutants lint fmt docs size install uninstall clean help \
        have-check have-lint FORCE
.SECONDARY:
.DELETE_ON_ERROR:
-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
