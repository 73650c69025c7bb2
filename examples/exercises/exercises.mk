# exercises.mk - build/exercises, which marks what students write in students/.

# The students' files, and the program around one of them, are compiled by build/exercises. So are the
# headers that they include: these are arrays of the program.
FORMS     = examples/exercises/students
MARKS     = examples/exercises/marker
MARKER    = $(filter-out %/harness.c,$(call files,$(MARKS)/*.c))
CARRIES   = $(sort $(FORMS)/exercises.h $(MARKS)/harness.c $(MARKS)/protocol.h examples/micro.c \
              $(FORMS)/attention.c $(MARKS)/scratch_calls.inc examples/exercises/mistakes/points.txt)
TEXT      = $(BUILD)/obj/$(MARKS)/texts
LIST      = $(BUILD)/obj/$(MARKS)/list
TEXTS     = $(TEXT).o $(LIST).o

ifneq ($(WINDOWS),)
$(BUILD)/exercises $(BUILD)/exercises.exe:
	@echo 'exercises: Windows has no fork, so the marker is not built for it: use WSL2' >&2; false
else
$(BUILD)/exercises: $(call objects,$(MARKER) examples/explain/page/json.c) $(TEXTS) $(RECORDER)
endif
$(TEXT).c: $(MARKS)/texts.h $(CARRIES) $(BUILD)/flags
	@mkdir -p $(@D); (cat $<; echo 'const Text texts[] = {'; \
	    for file in $(CARRIES); do echo "{\"$${file##*/}\", (const unsigned char[]){"; \
	        od -An -v -tu1 $$file | sed 's/[0-9][0-9]*/&,/g'; echo '0}},'; done; \
	    echo '}; const int num_texts = sizeof texts / sizeof *texts;') >$@
# A right function and its known mistakes, which are edits of it: mistakes/NN_name.txt; those of attention.txt are edits
# of micro.c.
EDITS     = examples/exercises/mistakes/edits.awk
EDITED    = $(patsubst %.txt,$(BUILD)/obj/%.inc,$(filter-out %/points.txt,$(call files,examples/exercises/mistakes/*.txt)))
$(BUILD)/obj/examples/exercises/mistakes/12_self_attention.inc: examples/exercises/mistakes/11_attention.txt
$(EDITED): $(BUILD)/obj/%.inc: %.txt $(EDITS) examples/micro.c
	@mkdir -p $(@D); awk -f $(EDITS) $(if $(filter %/attention.txt,$<),examples/micro.c) $< >$@ || { rm -f $@; false; }
# The exercises, which are the texts with a number: 7 < 7b < 8.
$(LIST).c: $(EDITED) $(BUILD)/flags
	@mkdir -p $(@D); awk 'BEGIN { print "#include \"examples/exercises/marker/numbers.h\"\n#include \"examples/exercises/marker/stages.h\"\n#include <math.h>" } \
	        /^const Exercise exercise_/ { number = FILENAME; gsub(/.*\/|_.*/, "", number); \
	            if (number == last) { print "two exercises have the number " number >"/dev/stderr"; exit 1 } \
	            last = number; print "#include \"" FILENAME "\""; list = list "&" $$3 ", "; n++ } \
	        END { print "const Exercise *const exercise_list[] = {" list "0};\nconst int num_exercises = " n ";" }' $(sort $(EDITED)) >$@
# For test_backwards: the forwards of the students' files.
FORWARDS  = $(BUILD)/obj/examples/exercises/mistakes/forwards.inc
$(FORWARDS): $(EDITED)
	@awk '/^.[*] forward / { print "#include \"$(FORMS)/" $$3 ".c\""; name = $$4; sub(/^.*forward [^ ]* [^ ]* /, ""); \
	        sub(/ [*].$$/, ";"); calls = calls "    if (strcmp(e->name, \"" name "\") == 0) " $$0 "\n" } \
	    END { print "static void text_forward(const Exercise *e, const Call *c, double *const *x, double *y) {\n" calls "}" }' $^ >$@
$(TEXTS): MORE = -I.
$(TEXTS): %.o: %.c $(BUILD)/flags
	$(compile)

$(BUILD)/obj/$(MARKS)/scratch_exercises.o: MORE = -I$(BUILD)/obj/examples/exercises/mistakes
$(BUILD)/obj/$(MARKS)/scratch_exercises.o: $(EDITED)

exercises: $(BUILD)/exercises$(EXE) ## mark the backwards that you write in examples/exercises/students/
	@CC='$(CC)' $(BUILD)/exercises$(EXE) || true
# Attention from scratch: what students get, and what Gradescope gets. The marker is built there, from these files.
UPLOADED   = Makefile tensor autograd nn examples tests/tests.mk tests/core.mk tests/tools
handout: ## the assignment for students, build/attention-assignment.zip
	@sh tests/tools/have zip
	@mkdir -p $(BUILD); rm -f $(BUILD)/attention-assignment.zip
	@awk -f $(dir $(EDITS))handout.awk $(dir $(EDITS))points.txt $(FORMS)/handout.html >$(BUILD)/handout.html
	@zip -qj $(BUILD)/attention-assignment.zip $(addprefix $(FORMS)/,attention.c check.h) $(BUILD)/handout.html
	@echo '$(BUILD)/attention-assignment.zip: attention.c, check.h and handout.html'
gradescope: ## its autograder, build/attention-autograder.zip
	@sh tests/tools/have zip
	@rm -rf $(BUILD)/autograder $(BUILD)/attention-autograder.zip; mkdir -p $(BUILD)/autograder/tapehead
	@cp $(MARKS)/setup.sh $(MARKS)/run_autograder $(BUILD)/autograder
	@tar cf - $(UPLOADED) | tar xf - -C $(BUILD)/autograder/tapehead
	@cd $(BUILD)/autograder && zip -qr ../attention-autograder.zip .
	@echo '$(BUILD)/attention-autograder.zip: setup.sh, run_autograder and the sources of the marker'
.PHONY: exercises handout gradescope
