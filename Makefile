# make         the library and the examples    make demo    see them work
# make test    the test suites                 make help    everything else
#
# Every source is found by its folder: to add a file, add the file. V=1 shows the commands,
# DEV=1 makes warnings errors, CC=clang uses clang. This file builds the library and the
# programs, and installs them. It includes tests/tests.mk, which tests them, and
# examples/explain/explain.mk, for the page of explain and the library as WebAssembly, and
# examples/exercises/exercises.mk, for the exercises.

.DEFAULT_GOAL = all
VERSION := $(shell sed -n 's/.*define TAPEHEAD_VERSION "\([^"]*\)".*/\1/p' tensor/tensor.h)
BUILD   = $(if $(CORE),build/core-only,build)
# What a rule sets for some targets, or this file for some systems, is empty for all others, even if the
# environment has a variable of that name. (tests/checks/build compares what make reads of the environment.)
$(foreach name,EXE MORE SONAME SPEED STACK UNALIGN WASM_FIRST WASM_SPEED WRAP,$(eval $(name) =))
# CPPFLAGS and CFLAGS are for each call of the compiler, LDFLAGS and LDLIBS for each link, LIBDIR,
# INCLUDEDIR, DOCDIR and DESTDIR for install.
CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DOCDIR ?= $(PREFIX)/share/doc
LIBS    = -lm $(LDLIBS) $(if $(WINDOWS),-static)
quoted  = '$(subst ','\'',$(1))'
include tests/tools/folder.mk # is this BUILD a folder to build in, and CC a compiler?
WARN    = -Wall -Wextra -Wpedantic -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wvla \
          -Wdouble-promotion $(if $(DEV),-Werror)
# The user's flags without those that change digits, NaN and -0: -ffast-math, of which -Ofast is made, and its
# parts. A link must not see them either: the program would begin by turning subnormal numbers off.
FAST    = -ffast-math -funsafe-math-optimizations -ffinite-math-only -fassociative-math -freciprocal-math \
          -fno-signed-zeros -fsingle-precision-constant -mdaz-ftz
exact   = $(filter-out $(FAST),$(subst -Ofast,-O3,$(1))) -fno-fast-math

# The files of each pattern in one order everywhere: make's own is that of the user's language.
files   = $(foreach pattern,$(1),$(sort $(wildcard $(pattern))))

# The core's folders, named here alone; every other folder of the library is of the rest. tests/checks/layers
# checks that the core does not know the rest.
CORE_FOLDERS = tensor tensor/operations tensor/kernels tensor/simple autograd autograd/ops nn
CORE_C  = $(call files,$(CORE_FOLDERS:%=%/*.c))
REST_C  = $(filter-out $(CORE_C),$(call files,tensor/*/*.c autograd/*/*.c nn/*/*.c))

# make CORE=1: the core alone, by any compiler of C11.
ifdef CORE
include tests/core.mk
else

# The sources need these flags, whatever CFLAGS says: C11, POSIX with M_PI and realpath, files of
# more than 2 GB, and options with which the compiler changes no digit of a result. A product and a
# sum are fused only where the code says so.
FLAGS   = $(TUNE) $(call exact,$(CPPFLAGS) $(CFLAGS)) -std=c11 $(SYSTEM) -pthread $(if $(WINDOWS),,-fPIC) \
          -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-asynchronous-unwind-tables \
          -ffile-prefix-map="$$PWD"=. $(LOCAL) $(WARN)

# For which machine does this compiler work?
LINUX   = $(findstring linux,$(TARGET))
X86_64  = $(filter x86_64-% amd64-%,$(TARGET))
AARCH64 = $(filter aarch64-% arm64-%,$(TARGET))
MACOS   = $(findstring -darwin,$(TARGET))$(findstring -macos,$(TARGET))
WINDOWS = $(findstring mingw,$(TARGET))$(findstring windows-gnu,$(TARGET))
EXE     = $(if $(WINDOWS),.exe)

# On macOS and FreeBSD the headers declare everything if no standard is asked for. On Windows, with
# MinGW-w64, win32.h declares what there is no header for, and printf is MinGW's, whose numbers are
# those of other systems.
SYSTEM  = $(if $(LINUX)$(WINDOWS),-D_XOPEN_SOURCE=700 -D_FILE_OFFSET_BITS=64) \
          $(if $(WINDOWS),-D__USE_MINGW_ANSI_STDIO=1 -include tensor/files/win32.h)

# Flags that some compilers do not take, or that only some machines need. Functions of the shared
# library call each other directly. Floats are not computed in wider types, as i386's first
# floating-point unit and gcc for s390x would do. gcc's usual tuning for x86 clears a struct by
# rep stos, which takes a tenth of a small op's time.
takes   = $(shell $(CC) $(1) -Werror -E -xc /dev/null >/dev/null 2>&1 && echo '$(1)')
LOCAL  := $(call takes,-fno-semantic-interposition) \
          $(if $(filter i386-% i486-% i586-% i686-% x86_64-% amd64-%,$(TARGET)),-msse2 -mfpmath=sse) \
          $(if $(filter s390x-%,$(TARGET)),$(call takes,-fexcess-precision=fast))
TUNE   := $(if $(findstring -march,$(CFLAGS))$(findstring -mtune,$(CFLAGS)),,\
            $(if $(X86_64),$(call takes,-mtune=icelake-server)))

# The kernels are compiled once per instruction set, and dispatch.c chooses when the first kernel is
# needed. NEON is in every AArch64.
ISAS     = $(if $(AARCH64),neon,baseline $(if $(X86_64),avx2 avx512))
AVX2     = -mavx2 -mfma $(UNALIGN)
AVX512   = $(AVX2) -mavx512f -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512

# The shared library: programs look for the name with the version without its last number, 0.2 for
# 0.2.0. macOS writes the version before the suffix, and looks for a library whose name begins with
# @rpath in the folders that a program gives with -rpath. nodelete: dlclose does not unload it, since
# a thread that ends later calls the allocator. (macOS never unloads a library with thread-local
# variables.)
ABI      = $(basename $(VERSION))
ifneq ($(WINDOWS),)
SHARED   = tapehead.dll
SHARING  = -shared $(EXPORTS) -Wl,--out-implib,$(BUILD)/libtapehead.dll.a
# The archiver for this compiler. Windows x64 aligns the stack to 16 bytes, and a gcc without
# Debian's patch keeps vectors of 32 bytes there as if it were aligned to 32 (bug 54412): so the
# assembler moves every vector as one that is not aligned.
AR      := $(if $(filter default,$(origin AR)),$(shell $(CC) -print-prog-name=ar),$(AR))
UNALIGN := $(call takes,-Wa$(comma)-muse-unaligned-vector-move)
else ifeq ($(MACOS),)
SHARED   = libtapehead.so
SONAME   = $(SHARED).$(ABI)
FULLNAME = $(SHARED).$(VERSION)
SMALLER  = -Wl,-z,noseparate-code # FreeBSD's linker does so anyway
SHARING  = -shared $(if $(LINUX),$(SMALLER)) -Wl,-z,now,-z,nodelete,-Bsymbolic,-soname,$(SONAME) \
           -Wl,--version-script,$(EXPORTS) $(WHOLE)
# clang's sanitizers are in the program, not in the library.
WHOLE    = $(if $(findstring -fsanitize,$(CFLAGS)),,-Wl,--no-undefined)
else
SHARED   = libtapehead.dylib
SONAME   = libtapehead.$(ABI).dylib
FULLNAME = libtapehead.$(VERSION).dylib
SHARING  = -dynamiclib -install_name @rpath/$(SONAME) -Wl,-exported_symbols_list,$(EXPORTS)
endif
EXPORTS  = $(BUILD)/exports.$(if $(WINDOWS),def,map)

# What there is to build ---------------------------------------------------------------------

KERNELS  = $(patsubst %,tensor/fast/%.c,fast matmul attention_tiles) # all else is compiled once
# What the core does, and the rest of the library in another way.
REPLACED = $(wildcard tensor/simple/*.c) autograd/ops/composed_attention.c
LIBRARY  = $(sort $(filter-out $(KERNELS) $(REPLACED) $(ELSEWHERE),$(CORE_C) $(REST_C)))
ELSEWHERE = tensor/files/$(if $(WINDOWS),replace,win32).c # what only other systems need
HEADERS  = tensor/tensor.h autograd/autograd.h nn/nn.h
SOURCES  = $(sort $(wildcard $(foreach folder,tensor autograd nn examples examples/exercises examples/explain tests tests/suites,\
           $(folder)/*.[ch] $(folder)/*.inc $(folder)/*/*.[ch] $(folder)/*/*.inc)))

objects  = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
SMALL    = $(if $(filter avx2,$(ISAS)),$(KERNELS:%.c=%.baseline.c)) tensor/number.c tensor/print.c \
           $(wildcard tensor/files/*.c) autograd/gradcheck.c nn/init.c nn/more/checkpoint.c
OBJECTS  = $(call objects,$(LIBRARY)) \
           $(foreach isa,$(ISAS),$(patsubst %.c,$(BUILD)/obj/%.$(isa).o,$(KERNELS)))
EXAMPLES = $(patsubst examples/%.c,$(BUILD)/%$(EXE),$(filter-out $(if $(WINDOWS),%/exercises.c),$(call files,examples/*.c)))
# A program's own parts are in the folder of its name; the makefiles in explain/ and exercises/ know theirs.
parts    = $(call objects,$(call files,examples/$(1)/*.c))
WITH_PARTS = $(filter-out explain exercises,$(notdir $(basename $(call files,examples/*.c))))
COMMON   = $(call objects,$(filter-out $(if $(WINDOWS),,%/windows.c),$(call files,examples/common/*.c)))

include examples/explain/explain.mk
include examples/exercises/exercises.mk
include tests/tests.mk

all: library $(EXAMPLES) ## the library and the examples
library: $(BUILD)/libtapehead.a $(BUILD)/$(SHARED) ## the library alone
core: ## the core of the library as two files, build/core/tapehead.h and tapehead.c
	@sh tests/tools/write-core $(BUILD)/core $(CORE_C)

# The name of a folder is a word, too, and make would say "Nothing to be done".
tensor autograd nn: library
	@echo 'tensor, autograd and nn are one library: $(BUILD)/libtapehead.a and $(BUILD)/$(SHARED)'
examples: $(EXAMPLES)
	@echo 'The programs are $(EXAMPLES)'
.PHONY: tensor autograd nn examples

# How to build it ----------------------------------------------------------------------------

quiet   = $(if $(V),,@)
compile = $(quiet)echo "  cc   $@"; mkdir -p $(@D); $(CC) $(FLAGS) $(SPEED) $(STACK) $(MORE) -MMD -MP -c $< -o $@
link    = $(quiet)echo "  link $@"; mkdir -p $(@D); $(CC) $(FLAGS) $(call exact,$(LDFLAGS)) $(filter %.o,$^) $(filter %.a,$^) -o $@

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
# -O3 makes loops over elements loops of vectors. Code that no step of training runs is compiled for
# size, and so are kernels that only the oldest CPUs need.
$(BUILD)/obj/tensor/fast/%.o $(BUILD)/obj/tensor/kernels/%.o: SPEED = $(if $(filter -O2,$(CFLAGS)),-O3)
$(BUILD)/obj/tensor/kernels/plain.o: SPEED =
$(BUILD)/obj/tensor/operations/loop.o: SPEED = $(if $(filter -O2,$(CFLAGS)),-O3)
$(call objects,$(SMALL)): SPEED = $(if $(filter -O2,$(CFLAGS)),-Os)
# The time of a program is that of the library: all are compiled without optimization but micro, whose loops are its
# own. With DEV=1 they are optimized, too: gcc finds a variable without a value only then. What a sanitizer sees is the
# same, and clang takes four times as long for them with -O1.
QUICK    = $(if $(filter -fsanitize=%,$(CFLAGS)),-O0,$(if $(DEV),,$(if $(filter -O2,$(CFLAGS)),-O0)))
$(call objects,$(filter-out examples/micro.c,$(wildcard examples/*.c examples/*/*.c))): SPEED = $(QUICK)
$(BUILD)/obj/tensor/fast/dispatch.o: MORE = $(ISAS:%=-DHAVE_%)
# The library runs in threads with little stack (tests/suites/library/test_stacks.c); at -O0 each temporary has a place
# of its own there, and a sanitizer's frames are larger.
SPARING  = $(if $(filter -fsanitize=%,$(CFLAGS)),,$(filter -O1 -O2 -O3 -Os,$(CFLAGS)))
$(OBJECTS): STACK = $(if $(DEV),$(if $(SPARING),-Wframe-larger-than=16384))

$(BUILD)/libtapehead.a: $(OBJECTS) $(BUILD)/sources
	@echo "  ar   $@"; rm -f $@; $(AR) rcs $@ $(OBJECTS)
$(BUILD)/$(SHARED): $(OBJECTS) $(BUILD)/sources $(EXPORTS)
	$(link) $(SHARING) $(LIBS)
	$(if $(SONAME),@ln -sf $(@F) $(BUILD)/$(SONAME))
$(EXAMPLES): $(BUILD)/%$(EXE): $(BUILD)/obj/examples/%.o $(COMMON) $(BUILD)/libtapehead.a
	$(link) $(LIBS)
$(foreach program,$(WITH_PARTS),$(eval $(BUILD)/$(program)$(EXE): $(call parts,$(program))))
# What the shared library exports: the functions of the public headers, a name per line. A program
# may have functions of its own by any other name.
$(BUILD)/exports: $(HEADERS)
	@mkdir -p $(@D); export LC_ALL=C; $(CC) $(CPPFLAGS) $(CFLAGS) -E -P nn/nn.h | grep -oE '[A-Za-z0-9_]+ *\(' | \
	    tr -d ' (' | grep -E '^(tensor|ag|tape|nn)_' | sort -u >$@
$(EXPORTS): $(BUILD)/exports
ifneq ($(WINDOWS),)
	@(echo EXPORTS; cat $<) >$@
else ifeq ($(MACOS),)
	@(echo '{ global:'; sed 's/$$/;/' $<; echo 'local: *; };') >$@
else
	@sed 's/^/_/' $< >$@
endif

# Files that say what was built, rewritten only if their text changes: after a change of the flags
# all objects are out of date, after a change of the list of objects or of what is linked with them
# all libraries and programs.
$(BUILD)/flags:   note = $(CC) $(FLAGS)
$(BUILD)/sources: note = $(OBJECTS) $(LDFLAGS) $(LIBS)
$(BUILD)/flags $(BUILD)/flags.wasm $(BUILD)/sources: FORCE
	@mkdir -p $(@D); echo $(call quoted,$(note)) | cmp -s - $@ || echo $(call quoted,$(note)) >$@

# What to do with it -------------------------------------------------------------------------

demo: $(filter-out %/exercises$(EXE),$(EXAMPLES)) ## see it work: every example, and the pictures that they make
	@sh tests/tools/run-demo $(BUILD)

INCLUDE = $(DESTDIR)$(INCLUDEDIR)/tapehead
LIB     = $(DESTDIR)$(LIBDIR)
BIN     = $(DESTDIR)$(PREFIX)/bin#  where Windows finds DLLs
DOC     = $(DESTDIR)$(DOCDIR)/tapehead
READMES = $(addsuffix README.md,$(dir $(HEADERS)))
# A folder as pkg-config knows it: relative to the prefix, if it is below.
relative = $(subst :,,$(subst :$(PREFIX)/,$${prefix}/,:$(1)))
# The installed pages name the sources and the tests, and have no links to them.
unlink   = 's/\[([^]]*)\]\([^)]*(\.(c|h|inc|def|py)|tests\/[^)]*)\)/\1/g'
# A line for each file. What is not copied is written, and then for all to read, whatever umask says.
put      = echo "  install $(3)" && install -m $(1) $(2) "$(3)"
write    = echo "  install $(1)" && $(2) >"$(1)" && chmod 644 "$(1)"
# The loader finds a library in a folder that it searches only when ldconfig has seen it there.
unseen   = PATH="$$PATH:/usr/sbin:/sbin"; \
           ldconfig -NXv 2>/dev/null | sed 's/:.*//' | grep -qxF $(call quoted,$(LIBDIR)) && \
           ! ldconfig -p | grep -qF $(call quoted,=> $(LIBDIR)/$(SONAME))
install: library ## into PREFIX (/usr/local), or into LIBDIR and INCLUDEDIR, below DESTDIR
	$(quiet)umask 022 && install -d "$(LIB)/pkgconfig" $(foreach header,$(HEADERS),"$(INCLUDE)/$(dir $(header))") \
	    $(foreach page,$(READMES),"$(DOC)/$(dir $(page))")
	$(quiet)$(call put,644,$(BUILD)/libtapehead.a,$(LIB)/libtapehead.a)
ifneq ($(WINDOWS),)
	$(quiet)umask 022 && install -d "$(BIN)"
	$(quiet)$(call put,755,$(BUILD)/$(SHARED),$(BIN)/$(SHARED))
	$(quiet)$(call put,644,$(BUILD)/libtapehead.dll.a,$(LIB)/libtapehead.dll.a)
else
	$(quiet)$(call put,755,$(BUILD)/$(SHARED),$(LIB)/$(FULLNAME))
	$(quiet)ln -sf $(FULLNAME) "$(LIB)/$(SONAME)"
	$(quiet)ln -sf $(SONAME) "$(LIB)/$(SHARED)"
endif
	$(quiet)$(foreach header,$(HEADERS),$(call put,644,$(header),$(INCLUDE)/$(header)) &&) true
	$(quiet)$(foreach page,LICENSE nn/functions.html,$(call put,644,$(page),$(DOC)/$(notdir $(page))) &&) true
	$(quiet)$(foreach page,$(READMES),$(call write,$(DOC)/$(page),sed -E $(unlink) $(page)) &&) true
	$(quiet)$(call write,$(LIB)/pkgconfig/tapehead.pc,printf '%s\n' $(call quoted,prefix=$(PREFIX)) \
	    $(call quoted,libdir=$(call relative,$(LIBDIR))) \
	    $(call quoted,includedir=$(call relative,$(INCLUDEDIR))) \
	    'Name: tapehead' 'Description: a minimal autograd tensor framework' 'Version: $(VERSION)' \
	    'Cflags: -I"$${includedir}"' 'Libs: -L"$${libdir}" -ltapehead -lm' \
	    $(call quoted,Libs.private: $(LIBS) -pthread))
	$(if $(DESTDIR),,$(if $(LINUX),@if $(unseen); then echo 'Programs find $(SONAME) after: sudo ldconfig'; fi))
uninstall: ## remove the installed files
	rm -rf "$(INCLUDE)" "$(DOC)" "$(LIB)/libtapehead.a" "$(LIB)/pkgconfig/tapehead.pc" \
	    $(if $(WINDOWS),"$(BIN)/$(SHARED)" "$(LIB)/libtapehead.dll.a",\
	    "$(LIB)/$(SHARED)" "$(LIB)/$(SONAME)" "$(LIB)/$(FULLNAME)")

clean: ## remove what was built
	rm -rf $(FOLDER) $(BUILD)

help: ## this list
	@LC_ALL=C awk -F ':.*## ' '/^[a-z-]*:.*## / { printf "%-16s%s\n", $$1, $$2 }' $(filter-out %.d,$(MAKEFILE_LIST))

FORCE:
.PHONY: all library core demo install uninstall clean help FORCE
.SECONDARY:
.DELETE_ON_ERROR:
-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
endif

# Work on all cores, unless told otherwise, by -j or in the environment, or told to clean first.
ifeq ($(MAKELEVEL)$(filter clean,$(MAKECMDGOALS)),0)
TOLD   := $(shell printf '%s\n' "$$MAKEFLAGS" | sed 's/ -- .*//' | grep -E '(^-?| -)[bBdeikLmnpqrRsStvw]*j[0-9]*( |$$)|--jobs')
CORES  := $(if $(TOLD),,$(shell sh tests/tools/cores))
MAKEFLAGS += $(CORES:%=-j%)
endif
