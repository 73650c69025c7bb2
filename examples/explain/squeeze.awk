# squeeze.awk - a script or a style sheet as make puts it into the page: without indentation, empty lines, and comments
# that stand on lines of their own. A comment must end at the end of a line. This is POSIX awk.
{ sub(/^[ \t]+/, "") }
inside && /\*\// && !/\*\/$/ {
    print "squeeze.awk: " FILENAME ":" FNR ": a comment ends inside a line" | "cat >&2"
    exit 1
}
inside { inside = !/\*\/$/; next }
/^\/\*/ && !/\*\// { inside = 1; next }
/^\/\*/ && index($0, "*/") == length($0) - 1 { next }
/^$/ || /^\/\// { next }
{ print }
