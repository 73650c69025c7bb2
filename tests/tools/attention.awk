# attention.awk - attention.c as a student would write it: with the bodies of micro.c in place of "your code".
#     awk -f attention.awk examples/micro.c examples/exercises/students/attention.c
#     awk -f attention.awk examples/micro.c tests/submissions/scratch.txt examples/exercises/students/attention.c
# The second one has all answers to each function, too: of the program with the name model-3, model is answer 3.

FNR == 1 { file++ }
function is_header(line) { return line ~ /^[A-Za-z].*[)] [{]$/ }
function name_in(header) {
    sub(/[(].*/, "", header)
    sub(/.*[ *]/, "", header)
    return header
}

# micro.c
file == 1 && is_header($0) { name = name_in($0); next }
file == 1 && /^}/ { name = "" }
file == 1 { right[name] = right[name] $0 "\n"; next }

# scratch.txt
file == 2 && ARGC > 3 {
    if (/^==== /) answers[name = $2]++
    else if (!/^says/) answer[name, answers[name] - 1] = answer[name, answers[name] - 1] $0 "\n"
    next
}

# attention.c
FNR == 1 && file > 2 { print "#include <string.h>\nextern char *program_invocation_name;" }
is_header($0) { header = $0; name = name_in($0); body = ""; next }
header == "" { print; next }
!/^}/ { body = body $0 "\n"; next }
{
    if (body ~ /your code/) put_answers()
    else printf "%s\n%s}\n", header, body
    header = ""
}

# "n, token, weights" of "(int n, const int *token, Matrix **weights)"
function arguments_in(header,   list, n, i, text) {
    sub(/.*[(]/, "", header)
    sub(/[)].*/, "", header)
    if (header == "void") return ""
    n = split(header, list, ",")
    for (i = 1; i <= n; i++) {
        sub(/.*[ *]/, "", list[i])
        text = text (i > 1 ? ", " : "") list[i]
    }
    return text
}
END {
    for (name in answers)
        if (!(name in is_put)) {
            print "scratch.txt: attention.c has no function " name >"/dev/stderr"
            failed = 1
        }
    exit failed
}
function put_answers(   k, calls, numbered) {
    is_put[name] = 1
    numbered = header
    sub(/ [{]$/, ";", numbered)
    if (answers[name]) print numbered
    for (k = 0; k < answers[name]; k++) {
        numbered = header
        sub(/[(]/, "_" k "(", numbered)
        printf "%s\n%s}\n", numbered, answer[name, k]
        calls = calls "    case " k ": return " name "_" k "(" arguments_in(header) ");\n"
    }
    print header
    if (k) {
        printf "    const char *mine = strstr(program_invocation_name, \"/%s-\");\n", name
        printf "    switch (mine ? atoi(strrchr(mine, '-') + 1) : -1) {\n%s    default:;\n    }\n", calls
    }
    printf "%s}\n", right[name]
}
