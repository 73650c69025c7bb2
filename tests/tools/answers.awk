# answers.awk - the answers to an exercise, from its file in tests/submissions (tests/README.md has the form).
#     awk -f answers.awk FILE               a C file of the answers that are no program: the functions of answer k end with _k
#     awk -v show=heads -f answers.awk FILE     the lines above every answer, from 0: its mark, and what is said
#     awk -v show=texts -f answers.awk FILE     every answer as a student writes it, under its mark

BEGIN { n = 0 }
function fail(sentence) {
    print FILENAME ": " mark ": " sentence >"/dev/stderr"
    failed = 1
    exit 1
}
# The first answer whose mark has this text in it.
function answer_with(title,   k) {
    for (k = 0; k < n; k++)
        if (index(marks[k], title)) return k
    fail("there is no answer " title)
}
function replaced(text, from, to,   at) {
    at = index(text, from)
    if (!at) fail("there is no " from)
    return substr(text, 1, at - 1) to substr(text, at + length(from))
}
function with_value(text, value) {
    if (value != "") gsub("@", value, text)
    return text
}
function add(text, line) {
    marks[n] = mark
    says[n] = words
    texts[n] = text
    lines[n++] = line
}
function finish(   i, k, value, values, text, base) {
    if (mark == "") return
    if (!edits) add(body, first + 1)
    values = edits ? split(with, value, " ") : 0
    if (edits && !values) value[values = 1] = ""
    base = edits && title != "" ? answer_with(title) : 0
    for (k = 1; k <= values; k++) {
        text = texts[base]
        for (i = 1; i <= edits; i++) text = replaced(text, from[i], with_value(to[i], value[k]))
        add(text, lines[base])
    }
}
function edit(text,   at) {
    at = index(text, " => ")
    if (!at) fail("an edit is FROM => TO, not " text)
    from[++edits] = substr(text, 1, at - 1)
    to[edits] = substr(text, at + 4)
}

/^==== / {
    finish()
    mark = substr($0, 6)
    body = words = with = title = ""
    edits = 0
    first = FNR
    at = index(mark, " : ")
    if (at) {
        edit(substr(mark, at + 3))
        mark = substr(mark, 1, at - 1)
    }
    next
}
body == "" && /^: / { edit(substr($0, 3)); first = FNR; next }
body == "" && /^of: / { title = substr($0, 5); first = FNR; next }
body == "" && /^with: / { with = substr($0, 7); first = FNR; next }
body == "" && /^says( not| once)?: / { words = words $0 "\n"; first = FNR; next }
{ body = body $0 "\n" }

# An answer that is marked as a program of its own.
function is_alone(k) { return marks[k] ~ /^(alone|no-compile|empty)/ }
function print_answer(k, file,   i, count, line, name, names, seen) {
    count = split(texts[k], line, "\n") - 1
    for (i = 1; i <= count; i++) {
        if (line[i] !~ /^[a-zA-Z].*[(]/ || line[i] ~ /;$/) continue
        name = line[i]
        sub(/[(].*/, "", name)
        sub(/.*[ *]/, "", name)
        if (name != "" && !((k, name) in known)) {
            known[k, name] = 1
            print "#define " name " " name "_" k
            names = names "#undef " name "\n"
        }
    }
    print "#line " lines[k] " \"" file "\""
    for (i = 1; i <= count; i++) {
        print line[i] ~ /^#include/ ? "" : line[i]
        if (split(line[i], name_of, /[ (]+/) > 1 && name_of[1] == "#define") names = names "#undef " name_of[2] "\n"
    }
    printf "%s", names
}
function print_all(   k, file) {
    file = FILENAME
    sub(/.*\//, "", file)
    sub(/txt$/, "c", file)
    print "#define _GNU_SOURCE\n#define TAPEHEAD_SHOW\n#define main students_main"
    print "#include \"exercises.h\"\n#include <assert.h>\n#include <errno.h>\n#include <math.h>\n#include <stdbool.h>\n" \
        "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/mman.h>"
    for (k = 0; k < n; k++)
        if (!is_alone(k)) print_answer(k, file)
}
END {
    if (failed) exit 1
    finish()
    if (show == "") print_all()
    for (k = 0; k < n && show != ""; k++) printf "==== %s\n%s", marks[k], show == "heads" ? says[k] : texts[k]
}
