# mistakes.awk - makes the C of mistakes.txt, for scratch_exercises.c.
#     awk -f mistakes.awk micro.c mistakes.txt
# A mistake is a function of micro.c with an edit: "-" and "+" lines, a text and what replaces it, everywhere in
# the body. "inside": it is decided where no element outside of a matrix is asked for. The next lines are what the student's code computes, and a question.

function replace(text, from, to,   at, done) {
    for (done = ""; at = index(text, from); text = substr(text, at + length(from)))
        done = done substr(text, 1, at - 1) to
    return done text
}
function fail(sentence) {
    print "mistakes.txt: " name ": " sentence > "/dev/stderr"
    failed = 1
    exit 1
}
function finish(   i, body) {
    if (!name) return
    body = definition[f]
    if (body == "") fail("micro.c has no function " f)
    sub("[ *]" f "[(]", "&#", body)
    sub(f "[(]#", name "(", body)
    for (i = 1; i <= edits; i++) {
        if (!index(body, from[i])) fail("its body has no " from[i])
        body = replace(body, from[i], to[i])
    }
    print body
    if (inside_only)
        print "static bool " name "_counts(const Call *c) { return stays_inside(\"" f "\", (Function *)" name ", c); }"
    rows[f] = rows[f] "    {\"" id "\", (Function *)" name ", \"" says "\", \"" asks "\", " \
        (inside_only ? name "_counts" : "NULL") "},\n"
    name = ""
}

FNR == NR {
    if ($0 ~ /^static .*[(].*[)] [{]$/) {
        f = $0
        sub(/[(].*/, "", f)
        sub(/.*[ *]/, "", f)
        inside = 1
        order[++functions] = f
    }
    if (inside) definition[f] = definition[f] $0 "\n"
    if ($0 == "}") inside = 0
    next
}
/^== / {
    finish()
    f = $2
    id = $3
    name = f "_" id
    inside_only = $4 == "inside"
    edits = 0
    says = ""
    asks = ""
    next
}
name && /^-/ { from[++edits] = substr($0, 2); to[edits] = ""; next }
name && /^[+]/ { to[edits] = substr($0, 2); next }
name && $0 != "" && says == "" { says = $0; next }
name && $0 != "" { asks = $0 }
END {
    if (failed) exit 1
    finish()
    for (i = 1; i <= functions; i++)
        if (rows[order[i]])
            print "static const KnownMistake mistakes_" order[i] "[] = {\n" rows[order[i]] "    {0}};"
}
