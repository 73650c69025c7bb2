# exercises.mk - build/exercises, which marks what students write in this folder.

# The students' files, and the program around one of them, are compiled by build/exercises. So are the
# headers that they include, and the texts that --find shows: these are arrays of the program.
STUDENTS  = $(wildcard examples/exercises/[01]*.c)
MARKER    = $(filter-out $(STUDENTS) %/harness.c %/process$(if $(WINDOWS),,_windows).c,$(wildcard examples/exercises/*.c))
CARRIES   = $(sort examples/exercises/harness.c examples/exercises/protocol.h $(wildcard examples/exercises/[01]*.h examples/exercises/find_*.inc))
TEXTS     = $(BUILD)/obj/examples/exercises/texts.o

$(BUILD)/exercises$(EXE): $(call objects,$(MARKER) examples/explain/json.c examples/recall/model.c) $(TEXTS) $(RECORDER)
$(TEXTS:.o=.c): examples/exercises/texts.h $(CARRIES) $(BUILD)/flags
	@mkdir -p $(@D); (cat $<; echo 'const Text texts[] = {'; \
	    for file in $(CARRIES); do echo "{\"$${file##*/}\", (const unsigned char[]){"; \
	        od -An -v -tu1 $$file | sed 's/[0-9][0-9]*/&,/g'; echo '0}},'; done; \
	    echo '}; const int num_texts = sizeof texts / sizeof *texts;') >$@
$(TEXTS): %.o: %.c $(BUILD)/flags
	$(compile)

exercises: $(BUILD)/exercises$(EXE) ## mark the backwards that you write in examples/exercises/
	@CC='$(CC)' $(BUILD)/exercises$(EXE) || true
.PHONY: exercises
