/* place.h - the marker's temporary folder: what it needs to compile a student's file, and copies of
 * the student's files.
 *
 *     kit/           the headers
 *     objects/       harness.o, started.o, and what calls each exercise's function: for the linker
 *                    alone
 *     source/        copies of one student's files
 *     around/        of attention from scratch: what becomes one of the objects
 *     whole/         of attention from scratch: the object of the student's whole file
 *     04_softmax/    the program of one exercise, and what it writes
 *
 * Of all of them only 04_softmax was ever writable for the user of the students' programs, and it
 * is no longer when one of them runs. */
#ifndef TAPEHEAD_EXERCISES_PLACE_H
#define TAPEHEAD_EXERCISES_PLACE_H

#include "exercise.h"
#include "process.h"

enum { PATH_SIZE = 4096, NAME_SIZE = 320, SENTENCE_SIZE = 1024 };
/* The compiler's time: for the kit, and for a student's file, which may include itself without end.
 */
enum { KIT_SECONDS = 30, COMPILER_SECONDS = 10 };

/* Where a student's files are. */
typedef struct {
    const char *folder;
    const char *prefix; /* of their names there, "ada_"; or "" */
    const char *given;  /* a file that is taken, */
    const char *as;     /* as "attention.c"; or both NULL */
    bool attention;     /* functions of attention.c are marked */
} Submission;

typedef struct {
    Submission submission;
    char folder[PATH_SIZE / 4]; /* of temporary files */
    char *compiler[16];         /* the words of $CC, or cc; NULL after the last one */
    char compiler_path[PATH_SIZE / 4];
    bool confines;         /* the compiler can open no file but the student's and the system's */
    bool links_statically; /* programs need no file, and may open none */
    bool has_started;      /* objects/started.o is there */
    bool whole;            /* attention.c is compiled for all of its functions, */
    bool endless;          /* or the compiler did not end */
} Place;

/* Finds the compiler, makes the folder and the kit; false with a sentence. */
bool place_make(Place *place, char *sentence, size_t size);
void place_remove(Place *place);
/* Copies a student's files; those of the student before go. False with a sentence. */
bool place_take(Place *place, const Submission *submission, char *sentence, size_t size);
/* The name of the exercise's file in the folder of the submission: "ada_04_softmax.c". */
void place_file(const Submission *from, const Exercise *e, char name[NAME_SIZE]);
/* Is it not there? With a sentence, which may name another that is. */
typedef enum { PLACE_THERE, PLACE_MISSING, PLACE_OTHER_NAME } PlaceState;
PlaceState place_is_missing(const Submission *from, const Exercise *e, char *sentence, size_t size);

/* The path of a file in one of the place's folders. */
void place_path(const Place *place, const char *folder, const char *name, const char *suffix,
                char path[PATH_SIZE]);

/* Writes a file there. */
bool place_write(const Place *place, const char *folder, const char *name, const char *text);
/* Compiles NAME.c of a folder, which has no word of a student's, as the marker's own user, to an
 * object of the kit. */
bool place_compile_kit(const Place *place, const char *from, const char *name);

/* Adds an exercise to the kit; false if the compiler fails. */
bool place_prepare(const Place *place, const Exercise *e);
/* Makes the student's program of an exercise, 04_softmax/program.exe. `messages` are the
 * compiler's. */
ProcessResult place_compile(const Place *place, const Exercise *e, char *messages, size_t size);
/* The first warning that place_compile does not give, since -O0 does not follow a loop: a variable
 * without a value. */
void place_warning(const Place *place, const Exercise *e, char *line, size_t size);
/* Where the compiler is not confined: does the exercise's file read others? With a sentence. */
bool place_reaches_out(const Place *place, const Exercise *e, char *sentence, size_t size);
/* Compiles source/NAME.c for all functions of attention from scratch: the same file is every
 * function's, so it need not be compiled for each. */
void place_compile_whole(Place *place, const char *name);
/* The same as place_compile, with the object of the whole file. */
ProcessResult place_link_whole(const Place *place, const Exercise *e, char *messages, size_t size);
/* Does the compiler compile a function that does nothing? If not, no student is to blame. */
bool place_can_compile(const Place *place, const Exercise *e);
/* How much static memory has the student's object? 0 where it is not an ELF file. */
int64_t place_static_bytes(const Place *place, const Exercise *e);
/* Can so many bytes be written? */
bool place_has_room(const Place *place, int64_t bytes);

#endif
