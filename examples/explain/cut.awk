# cut.awk - cuts out of the sources the lines that the page of explain shows beside a step, and writes them as C: the
# tables of program.h.
#
#     awk -f cut.awk elementwise.def plain_math.h plain.inc ... autograd/ops/*.c ... lesson*.c >sources.c
#
# A piece is a function, a macro, a row or a statement, with the comment that stands directly above it. An op of
# elementwise.def is its row. Any other op is the plain kernels NAME(op) and NAME(op_dx); where there is no such kernel,
# the forward and the backward that its DEFINE_OP names. The table in BEGIN has the exceptions. A piece that is not
# found ends the build. This is POSIX awk.

function fail(what) {
    print "cut.awk: " what | "cat >&2"
    failed = 1
    exit 1
}

function instead(op, way, names) { chosen[op, way] = names }

BEGIN {
    pieces = ops = models = 0
    # Where the rule is not one kernel or one function: op, way, the pieces. A kernel comes before a function.
    instead("sum", "backward", "sum_backward ag_expand_to_x")
    instead("bmm", "forward", "matmul")
    instead("bmm", "backward", "product_backward matmul")
    instead("matmul", "backward", "product_backward matmul")
    instead("linear", "forward", "linear_forward matmul")
    instead("linear", "backward", "linear_backward matmul")
    instead("masked_fill", "forward", "filled")
    instead("masked_fill", "backward", "masked_fill_backward filled")
    instead("dropout", "backward", "dropout")
    instead("layer_norm", "backward", "layer_norm_dx layer_norm_dw")
    instead("additive_scores", "forward", "additive")
    instead("additive_scores", "backward", "additive_dx")
}

{
    line[FILENAME, FNR] = $0
    if (FNR == 1) file[++files] = FILENAME
    size[FILENAME] = FNR
}

# ---- pieces -----------------------------------------------------------------------------------------------------

# The first line of the comment that ends directly above a line; the line itself if there is none. The title of a
# section is no comment of a function.
function comment_above(f, at,    i) {
    i = at - 1
    if (line[f, i] !~ /\*\/$/) return at
    while (i > 1 && line[f, i] !~ /^[ ]*\/\*/) i--
    return line[f, i] ~ /^\/\* ----/ ? at : i
}

# The number of a piece.
function piece(f, from, to, title) {
    if (!((f, from, to) in number)) {
        number[f, from, to] = pieces
        where[pieces] = f SUBSEP from SUBSEP to SUBSEP title
        pieces++
    }
    return number[f, from, to]
}

# The line on which something ends that begins here: the pattern is that of its last line.
function end_of(f, from, pattern,    i) {
    for (i = from; i <= size[f]; i++) if (line[f, i] ~ pattern) return i
    fail(f ":" from ": this has no end")
}

# Names every function of a file: kernel[name] is NAME(name) of the plain kernels, local[file, name] any other.
function list_functions(f,    i, from, head, name, to) {
    for (i = 1; i <= size[f]; i++) {
        if (line[f, i] !~ /^[A-Za-z_][A-Za-z_0-9 *]*(NAME)?\(/ || line[f, i] ~ /^[A-Z_]+\(/) continue
        from = i
        head = line[f, i]
        while (line[f, i] !~ /[{};]$/ && i < size[f]) i++
        if (line[f, i] ~ /;$/ && line[f, i] !~ /\{/) continue # declared only
        to = line[f, i] ~ /\}$/ ? i : end_of(f, i, "^}")
        name = head
        if (match(head, /NAME\([a-z_]+\)\(/)) {
            name = substr(head, RSTART + 5, RLENGTH - 7)
            if (!(name in kernel)) kernel[name] = f SUBSEP from SUBSEP to
        } else {
            sub(/\(.*/, "", name)
            sub(/.*[ *]/, "", name)
            local[f, name] = f SUBSEP from SUBSEP to
            any[name] = f SUBSEP from SUBSEP to
            body[f, i + 1] = to SUBSEP name
        }
        i = to
    }
}

# The number of the kernel or function with this name; a function of the file f comes first.
function named(f, name,    found, part) {
    if (name in kernel) found = kernel[name]
    else if ((f, name) in local) found = local[f, name]
    else if (name in any) found = any[name]
    else fail("no kernel or function has the name " name)
    split(found, part, SUBSEP)
    return piece(part[1], comment_above(part[1], part[2]), part[3], name)
}

function all_named(f, names,    i, n, part, list) {
    n = split(names, part, " ")
    for (i = 1; i <= n; i++) list = list with_kernels(named(f, part[i]), list)
    return list
}

# A piece, and the kernels that it calls: tensor_kernels()->name, or NAME(name)(...) in a kernel; without those that are
# in the list already.
function with_kernels(n, list,    part, i, text, name, more) {
    if (index("," list, "," n ",") == 0) more = n ","
    split(where[n], part, SUBSEP)
    for (i = part[2] + 0; i <= part[3] + 0; i++) {
        text = line[part[1], i]
        while (match(text, /kernels\(\)->[a-z_]+|NAME\([a-z_]+\)\(/)) {
            name = substr(text, RSTART, RLENGTH)
            text = substr(text, RSTART + RLENGTH)
            gsub(/kernels\(\)->|NAME\(|\)\(/, "", name)
            if (!(name in kernel) || name == part[4]) continue
            name = named("", name)
            if (index("," list more, "," name ",") == 0) more = more name ","
        }
    }
    return more
}

# is_row: the op is a row of elementwise.def.
function add_op(name, is_row, forward, backward) {
    op[ops++] = "{\"" name "\", " is_row ", {" forward "-1}, {" backward "-1}}"
}

# ---- the rows of elementwise.def --------------------------------------------------------------------------------

# Splits the arguments of a macro at its commas; returns how many there are. A string has no escapes.
function split_arguments(text, part,    i, c, n, depth, quoted) {
    n = 1
    part[1] = ""
    for (i = index(text, "(") + 1; i < length(text); i++) {
        c = substr(text, i, 1)
        if (c == "\"") quoted = !quoted
        if (!quoted) depth += (c == "(") - (c == ")")
        if (c == "," && !quoted && !depth) part[++n] = ""
        else part[n] = part[n] c
    }
    return n
}

# The macros of plain_math.h that a formula calls.
function macros_in(formula,    list, name, to) {
    while (match(formula, /[A-Z_]+\(/)) {
        name = substr(formula, RSTART, RLENGTH - 1)
        formula = substr(formula, RSTART + RLENGTH)
        if (!(name in macro)) continue
        to = macro[name]
        to = piece(mathematics, comment_above(mathematics, to), to, name) ","
        if (index("," list, "," to) == 0) list = list to
    }
    return list
}

function list_macros(f,    i, name) {
    mathematics = f
    for (i = 1; i <= size[f]; i++)
        if (line[f, i] ~ /^#define [A-Z_]+\(/) {
            name = substr(line[f, i], 9)
            sub(/\(.*/, "", name)
            macro[name] = i
        }
}

# What the arguments of a row are: lines of the head of elementwise.def.
function columns_of(f, form,    i, from) {
    sub(/_SCALAR/, "", form)
    for (i = 1; i <= size[f] && !from; i++) if (index(line[f, i], " * " form "(") == 1) from = i
    if (!from) fail(f ": the head does not say what " form " is")
    for (i = from; line[f, i + 1] ~ /^ \* ( |UNARY_SCALAR:)/;) i++
    return piece(f, from, i, form) ","
}

function list_rows(f,    i, from, text, part, form, row, back) {
    for (i = 1; i <= size[f]; i++) {
        if (line[f, i] !~ /^(UNARY|UNARY_SCALAR|BINARY|COMPARE)\([a-z]/) continue
        from = i
        text = line[f, i]
        while (line[f, i] !~ /\)$/) text = text line[f, ++i]
        form = substr(text, 1, index(text, "(") - 1)
        split_arguments(text, part)
        row = piece(f, from, i, part[1]) "," columns_of(f, form)
        back = form == "BINARY" ? part[8] part[9] : part[8]
        if (form == "COMPARE") add_op(part[1], "true", row macros_in(part[3]), "")
        else add_op(part[1], "true", row macros_in(part[7]), row macros_in(back))
    }
}

# ---- the ops of autograd/ ---------------------------------------------------------------------------------------

# The function that the definition of an op names.
function field(text, name) {
    if (!match(text, "\\." name " = [a-z_0-9]+")) return ""
    return substr(text, RSTART + length(name) + 4, RLENGTH - length(name) - 4)
}

function pieces_of(f, name, way, kernel_name, function_name) {
    if ((name, way) in chosen) return all_named(f, chosen[name, way])
    if (function_name == "") return ""
    return with_kernels(named(f, kernel_name in kernel ? kernel_name : function_name), "")
}

function list_ops(f,    i, text, name) {
    for (i = 1; i <= size[f]; i++) {
        if (line[f, i] !~ /^DEFINE_OP\(/ && line[f, i] !~ /^const Op ag_op_/) continue
        text = line[f, i]
        while (line[f, i] !~ /;$/ && i < size[f]) text = text line[f, ++i]
        name = text
        sub(/^DEFINE_OP\(|^const Op ag_op_/, "", name)
        sub(/[, ].*/, "", name)
        add_op(name, "false", pieces_of(f, name, "forward", name, field(text, "forward")),
               pieces_of(f, name, "backward", name "_dx", field(text, "backward")))
    }
}

# ---- the models of the lessons ----------------------------------------------------------------------------------

# The place of the bracket that closes the one at `from`; 0 if there is none.
function closing(text, from,    i, c, depth, quoted) {
    for (i = from; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c == "\"") quoted = !quoted
        if (!quoted) depth += (c == "(") - (c == ")")
        if (!depth) return i
    }
    return 0
}

function add_name(f, source, name, call) {
    sub(/.*lesson/, "", f)
    sub(/\.c$/, "", f)
    model[models++] = "{\"" f "\", " functions ", " name ", \"" call "\", " source "}"
}

# Each ag_name(call(...), "name") of a statement says which call made which result. Where the call is in the statement
# before, this statement is part of the piece. The name is the last string of the two arguments, also in text_of("%s_h", x).
function list_names(f, from, to, before, title, text,    at, end, inside, call, found, n, part) {
    at = index(text, "ag_name(")
    for (; at; at = found ? at + found : 0) {
        end = closing(text, at + 7)
        if (!end) fail(f ":" from ": a bracket is not closed")
        inside = substr(text, at + 8, end - at - 8)
        call = match(inside, /^[a-z_0-9]+\(/) ? substr(inside, 1, RLENGTH - 1) : ""
        n = split(inside, part, "\"")
        if (n > 2 && inside !~ /^[a-z]+(\.|->)/)
            add_name(f, piece(f, call == "" ? before : from, to, title), "\"" part[n - 1] "\"", call)
        found = index(substr(text, at + 1), "ag_name(")
    }
    if (text ~ / = nn_[a-z_]+_forward\(/) # the results that the module names
        add_name(f, piece(f, from, to, title), "\"\"", "")
}

# The statements of the body of a function.
function list_statements(f, from, to, title,    i, text, next_line, begin, before) {
    functions++
    for (i = from; i < to; i++) {
        if (line[f, i] ~ /^ *\/\*/) while (line[f, i] !~ /\*\/$/) i++
        if (line[f, i] ~ /[{}:]$/ || line[f, i] ~ /\*\/$/ && line[f, i] !~ /; *\/\*/ || line[f, i] == "") continue
        begin = i
        text = line[f, i]
        while (line[f, i] !~ /;( *\/\*.*)?$/ && i + 1 < to) {
            next_line = line[f, ++i]
            sub(/^ +/, " ", next_line)
            text = text next_line
        }
        list_names(f, begin, i, before ? before : begin, title, text)
        before = begin
    }
}

function list_models(f,    i, part, before) {
    before = models
    for (i = 1; i <= size[f]; i++)
        if ((f, i) in body) {
            split(body[f, i], part, SUBSEP)
            list_statements(f, i, part[1], part[2])
        }
    if (models == before && f ~ /lesson[0-9]/) fail(f ": no statement names a result")
}

# ---- the tables -------------------------------------------------------------------------------------------------

function in_quotes(text) {
    if (text ~ /<[\/!]/) fail("a page cannot hold </ or <!: " text)
    gsub(/\\/, "\\\\", text)
    gsub(/"/, "\\\"", text)
    return "\"" text "\""
}

function print_piece(n,    part, i) {
    split(where[n], part, SUBSEP)
    printf "    {\"%s\", %d, \"%s\", (const char *const[]){\n", part[1], part[2], part[4]
    for (i = part[2] + 0; i <= part[3] + 0; i++) printf "        %s,\n", in_quotes(line[part[1], i])
    print "        NULL}},"
}

# list, the global array of n items, as one array of C.
function print_table(type, name, list, n,    i) {
    printf "\nconst %s %s[] = {\n", type, name
    for (i = 0; i < n; i++) print "    " list[i] ","
    printf "    {0}};\n"
}

END {
    if (failed) exit 1
    for (i = 1; i <= files; i++) if (file[i] ~ /\.(c|inc)$/) list_functions(file[i])
    for (i = 1; i <= files; i++) if (file[i] ~ /plain_math\.h$/) list_macros(file[i])
    for (i = 1; i <= files; i++) {
        if (file[i] ~ /\.def$/) list_rows(file[i])
        if (file[i] ~ /^autograd\//) list_ops(file[i])
        if (file[i] ~ /lesson[^\/]*\.c$/) list_models(file[i])
    }
    if (!ops || !models) fail("there are no ops or no models in these files")
    undo = named("", "unbroadcast")
    added = named("", "accumulate")
    print "/* What the page shows beside a step: cut out of the sources by examples/explain/cut.awk. */"
    print "#include \"examples/explain/page/program.h\"\n\n#include <stddef.h>\n"
    print "const SourceText program_sources[] = {"
    for (i = 0; i < pieces; i++) print_piece(i)
    printf "    {0}};\nconst int program_num_sources = %d;\nbool program_shown[%d];\n", pieces, pieces
    printf "const int program_unbroadcast = %d, program_accumulate = %d;\n", undo, added
    print_table("OpSources", "program_ops", op, ops)
    print_table("ModelSource", "program_models", model, models)
}
