# handout.awk - the handout, in which {matmul_forward} is the function and its points.
#     awk -f handout.awk points.txt handout.html
FNR == NR { points[$1] = $2; next }
{
    while (match($0, /[{][a-z_]+[}]/)) {
        name = substr($0, RSTART + 1, RLENGTH - 2)
        $0 = substr($0, 1, RSTART - 1) name " " (name in points ? points[name] : 1) substr($0, RSTART + RLENGTH)
    }
    print
}
