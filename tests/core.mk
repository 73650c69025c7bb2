# core.mk - make CORE=1: the core by itself, as any compiler of C11 builds it (CC=tcc), and the core's suites.
#
# The core is compiled as plain C11, without POSIX. The suites need more: they read golden files and call ops
# of the rest of the library. So HOST compiles them with the rest, but without tensor/fast/: every kernel of the
# core, every allocation and every part of a work is the core's own.
HOST        = cc
CORE_FLAGS  = -std=c11 $(call exact,$(CPPFLAGS) $(CFLAGS)) -DTAPEHEAD_CORE $(if $(findstring tcc,$(CC)),,-pedantic -ffp-contract=off $(WARN))
CORE_SUITES = $(patsubst %,$(BUILD)/tests/test_%,tensor print random tape ops golden attention function seeds nn notebook)
# tcc's code calls functions of its own library.
TCC_LIBRARY = $(if $(findstring tcc,$(CC)),$(wildcard /usr/lib/*/tcc/libtcc1.a /usr/lib/tcc/libtcc1.a /usr/local/lib/tcc/libtcc1.a))
HOST_C      = $(filter-out tensor/fast/% %/win32.c,$(REST_C)) tests/tools/without_fast.c
HOST_FLAGS  = -O1 -g -std=c11 -D_XOPEN_SOURCE=700 -ffp-contract=off -DTEST_HOOKS -DCORE_ONLY $(WARN) -Wno-unused \
              $(if $(findstring tcc,$(CC)),-DONE_THREAD) # tcc has no thread-local variables

.DEFAULT_GOAL = test
CHOSEN      = $(call chosen,$(CORE_SUITES) $(BUILD)/tests/test_composed)
test: $(CHOSEN) $(BUILD)/tests/test_notebook $(BUILD)/notebook
	@BUILD=$(BUILD) sh tests/tools/run-suites $(CHOSEN)
	@sh tests/checks/core '$(CC)' $(BUILD)/libtapehead-core.a
	@sh tests/tools/write-core $(BUILD)/core $(CORE_C)
	@sh tests/checks/one-file $(BUILD) $(filter-out $(call host_objects,$(FUSED:%=autograd/more/%)),$(NOTEBOOK))

core_objects = $(patsubst %.c,$(BUILD)/core/%.o,$(1))
host_objects = $(patsubst %.c,$(BUILD)/host/%.o,$(1))
$(BUILD)/core/%.o: %.c $(BUILD)/flags
	@echo "  cc   $@"; mkdir -p $(@D); $(CC) $(CORE_FLAGS) $(if $(findstring tcc,$(CC)),,-MMD -MP) -c $< -o $@
$(BUILD)/libtapehead-core.a: $(call core_objects,$(CORE_C))
	@echo "  ar   $@"; rm -f $@; $(AR) rcs $@ $^
$(BUILD)/host/%.o: %.c $(BUILD)/flags
	@echo "  cc   $@"; mkdir -p $(@D); $(HOST) $(HOST_FLAGS) $$(pkg-config --cflags check) -MMD -MP -c $< -o $@
WATCHED     = -Wl,--wrap=tensor_fail,--wrap=tensor_cache_alloc,--wrap=tensor_cache_free # as in tests.mk
$(BUILD)/tests/test_attention: WRAP = -Wl,--wrap=aligned_alloc,--wrap=free
$(filter-out %/test_notebook,$(CORE_SUITES)): $(BUILD)/tests/%: $(BUILD)/host/tests/suites/library/%.o
$(BUILD)/tests/test_notebook: $(BUILD)/host/tests/suites/programs/test_notebook.o
$(CORE_SUITES): $(call host_objects,tests/suites/common.c tests/suites/common_program.c $(HOST_C)) \
                $(BUILD)/libtapehead-core.a
	@echo "  link $@"; mkdir -p $(@D); $(HOST) $(WATCHED) $(WRAP) $(filter %.o,$^) $(filter %.a,$^) $(TCC_LIBRARY) $$(pkg-config --libs check) -lm -o $@
# The documents once more, with what the core composes in place of the other ring's fused ops.
FUSED    = fused_attention.c additive_scores.c
$(BUILD)/tests/test_composed: $(call host_objects,tests/suites/library/test_seeds.c tests/suites/common.c tests/suites/common_program.c \
                $(filter-out $(FUSED:%=autograd/more/%),$(HOST_C))) $(BUILD)/libtapehead-core.a
	@echo "  link $@"; mkdir -p $(@D); $(HOST) $(WATCHED) -Wl,--defsym=ag_op_attention=0,--defsym=ag_op_additive_scores=0 \
	    -Wl,--defsym=ag_attention_scaled=0 $^ $(TCC_LIBRARY) $$(pkg-config --libs check) -lm -o $@
NOTEBOOK = $(call host_objects,examples/notebook.c $(call files,examples/notebook/*.c) $(filter-out %/windows.c,$(call files,examples/common/*.c)) $(HOST_C))
$(BUILD)/notebook: $(NOTEBOOK) $(BUILD)/libtapehead-core.a
	@echo "  link $@"; $(HOST) $^ $(TCC_LIBRARY) -lm -o $@
$(call host_objects,$(wildcard tests/suites/*.c tests/suites/*/*.c)): | have-check
have-check:
	@sh tests/tools/install-check
$(BUILD)/flags: FORCE
	@mkdir -p $(@D); echo '$(CC) $(CORE_FLAGS) $(HOST)' | cmp -s - $@ || echo '$(CC) $(CORE_FLAGS) $(HOST)' >$@
FORCE:
.PHONY: test have-check FORCE
.SECONDARY:
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
