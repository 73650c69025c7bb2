# folder.mk - stops make with one sentence, before it has made anything, if BUILD is no folder to build in,
# CC no compiler that builds a program, or a name in ONLY or WITHOUT no suite. tests/checks/build tries it.

# These goals build nothing: they need no folder to write in and no compiler.
BUILDS := $(filter-out clean fmt help uninstall,$(or $(MAKECMDGOALS),all))
comma   = ,

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

# ONLY=ops,tape runs these suites alone, and WITHOUT=alloc_failure leaves this one out.
names   = $(subst $(comma), ,$(1))
named   = $(foreach name,$(call names,$(1)),%/test_$(name)$(EXE) %/test_$(name).wasm)
chosen  = $(filter-out $(call named,$(WITHOUT)),$(if $(call names,$(ONLY)),$(filter $(call named,$(ONLY)),$(1)),$(1)))
NAMES  := $(strip $(if $(CORE),composed) $(patsubst test_%.c,%,$(sort $(notdir $(wildcard tests/suites/*/test_*.c)))))
unknown = $(filter-out $(NAMES),$(call names,$(1)))
ifneq ($(BUILDS),)
$(foreach variable,ONLY WITHOUT,$(if $(call unknown,$($(variable))),$(error \
  $(variable)=$($(variable)): no suite is called $(call unknown,$($(variable))); the suites are $(NAMES))))
endif

# The machine and the system for which this compiler works: "x86_64-linux-gnu",
# "arm64-apple-darwin23.6.0"; 127 if there is no such command.
TARGET := $(shell { $(CC) -dumpmachine; } 2>/dev/null || echo $$?)

fails   = $(shell ($(1)) 2>/dev/null || echo yes)
ifneq ($(BUILDS),)
ifneq ($(filter 126 127,$(TARGET)),)
$(error CC=$(CC): there is no such compiler here: install gcc or clang, or name yours, as CC=gcc-12 does)
endif
LACKS  := $(shell sh tests/tools/have-libc $(call quoted,$(CC)) $(call quoted,$(CPPFLAGS) $(CFLAGS) $(LDFLAGS)) \
            '$(TARGET)' $(FOLDER)/flags)
ifneq ($(LACKS),)
$(error $(LACKS))
endif
ifneq ($(call fails,mkdir -p $(FOLDER) && [ -w $(FOLDER) ]),)
$(error BUILD=$(ASKED): this folder cannot be made, or nothing can be written in it)
endif
ifneq ($(call fails,$(LINK)),)
$(error BUILD=$(ASKED): make needs a link to this name without its spaces, and cannot make one in $(CURDIR))
endif
endif
