/* tables.js - draws the tables of a picture: how large their cells are, and each cell. */
"use strict";

const MOST_COLUMNS = 16; /* a wider table scrolls in itself */
const FEW_COLUMNS = 8; /* are all in view, and need no numbers beside words */
const FEWER_COLUMNS = [12, 10, 8, 7, 6, 5, 4]; /* in view of tables of more, if all tables then stand in one line */
const NEXT_COLUMN = 12; /* pixels of the next column, which say that there are more */

/* ---- how large ---------------------------------------------------------------------------------------------------- */

const SMALL = 28; /* pixels: a cell of a small table, without words: a mask, read beside the others */

const rowLabels = view =>
    (view.isMean || view.isSmall ? "" : view.rowWords ? view.rowWords.join() : view.rows > 1 ? String(view.rows) : "");
/* How many columns of a table are in view at a time. */
const columnsOf = (view, most) => (view.columns > FEW_COLUMNS ? Math.min(view.columns, most) : view.columns);

const isCut = (view, most) => view.columns > columnsOf(view, most);

/* Pixels beside the cells of a table: the words or numbers of its rows. */
function sideOf(view, isTight, k) {
    if (view.isMean) return 56 * k; /* its name is wider than its column */
    if (!rowLabels(view) || (isTight && view.repeats)) return 2;
    return 2 + (view.rowWords ? Math.max(...view.rowWords.map(word => word.length)) * 8.6 * k + 7 : 15 * k);
}

/* Pixels for the signs between the tables. */
const signsWidth = (items, isTight, gap, k) => sum(items.filter(item => item.op).map(({ op, note }) => gap +
    (/^[()]$/.test(op) ? 18 * k : /^[a-z]{3}/.test(op) ? op.length * 11 * k : note && !isTight
        ? 54 * k : Math.max(18, op.length * 13) * k)));

/* In one line, with fewer columns of large tables in view if need be; else in several lines, with all columns. */
function layoutOf(items, W, H, all, mustWrap = false) {
    const whole = layoutWith(items, W, H, all, mustWrap, MOST_COLUMNS);
    if (!whole.wraps || mustWrap || all || W < 1000) return whole;
    return FEWER_COLUMNS.map(most => layoutWith(items, W, H, all, false, most)).find(each => !each.wraps) || whole;
}

/* Cells as large as W by H pixels allow: all tables in one line; if they would be small, without notes and without row
 * words that repeat those of a table before; if they would be too small for their digits, in several lines. all: every
 * panel is drawn, not one; mustWrap: they do not fit in one line; most: columns of a table that are in view at a time. */
function layoutWith(items, W, H, all, mustWrap, most) {
    const k = enlarged(), gap = 10 * k, tables = items.filter(item => item.table).map(item => item.table);
    const rowsIn = view => (view.onlyRow !== undefined ? 1 : view.rows), rows = Math.max(1, ...tables.map(rowsIn));
    tables.forEach((view, n) => (view.repeats = !all && tables.slice(0, n).some(before =>
        rowLabels(before) === rowLabels(view) && before.rows === view.rows)));
    const panels = view => (all ? view.panels : 1), large = tables.filter(view => !view.isSmall);
    const columns = sum(large.map(view => columnsOf(view, most) * panels(view)));
    const smallWidth = sum(tables.filter(view => view.isSmall).map(view => columnsOf(view, most) * (SMALL * k + 2)));
    const chars = Math.max(...large.map(view => Math.max(1, ...view.numbers.map(x => fix(x, view.format).length))));
    const least = Math.floor(Math.max(34, chars * 7.2 + 6) * k); /* as a cell is whole pixels, too */
    const besides = isTight => sum(tables.map(view => sideOf(view, isTight, k) + (isCut(view, most) ? NEXT_COLUMN : 0) + gap +
        (panels(view) - 1) * (20 + (isTight ? 2 : sideOf(view, false, k)))));
    const room = isTight => Math.floor((W - smallWidth - besides(isTight) - signsWidth(items, isTight, gap, k)) / columns) - 2;
    let isTight = room(false) < 66 * k, cell = room(isTight);
    const wraps = mustWrap || cell < least;
    if (wraps) {
        isTight = false;
        cell = Math.min(...large.map(view => {
            const beside = all && W > 700 ? Math.min(panels(view), 2) : 1,
                around = sideOf(view, false, k) + (W < 700 ? 60 : 40) * k;
            return Math.floor((W - beside * around) / (columnsOf(view, most) * beside)) - 2;
        }));
        /* The result and the first table of its formula share a line, if both can be read there. */
        const [a, b] = large, pair = a && b && W > 700 && !all ? Math.floor((W - sideOf(a, false, k) - sideOf(b, false, k) - 80 * k) /
            (columnsOf(a, most) + columnsOf(b, most))) - 2 : 0;
        if (pair >= least) cell = Math.min(cell, pair);
    }
    cell = Math.max(Math.min(least, 46 * k), Math.min(84 * k, cell));
    const highest = wraps ? (W < 700 ? 31 : 36) * k : (H - 158 * k) / rows;
    const height = Math.max(24 * k, Math.min(40 * k, cell * 0.6, highest));
    const font = Math.max(11 * k, Math.min(20 * k, height * 0.52, (cell - 10) / (chars * 0.575)));
    const heads = !wraps && tables.some(view => view.columnWords || (view.columns > 1 && !view.rowWords));
    return { cell, height, font, wraps, isTight, heads, isTall: tables.some(view => view.columnWords), rows, columns,
        least, most };
}

/* ---- drawing ------------------------------------------------------------------------------------------------------ */

function drawItems(picture, layout, isPaper) {
    const { items, moves } = picture;
    return el("div", { class: `items ${layout.wraps ? "wrap" : ""} ${moves ? "moving" : ""}`,
        "--cw": layout.cell + "px", "--ch": layout.height + "px", "--font": layout.font + "px" },
    groupsOfItems(items).map(group => drawGroup(group, layout, !!moves || isPaper)));
}

const isPower = ({ op }) => /^[⁰¹²³⁴-⁹]$/.test(op || "");

/* What must not be torn apart at the end of a line: the signs before a table, the table, and a bracket or a power after it. */
function groupsOfItems(items) {
    const list = [];
    let open = [];
    for (const item of items) {
        if ((item.op === ")" || isPower(item)) && list.length && !open.length) {
            list[list.length - 1].push(item);
            continue;
        }
        open.push(item);
        if (item.table) {
            list.push(open);
            open = [];
        }
    }
    if (open.length && list.length) list[list.length - 1].push(...open);
    else if (open.length) list.push(open);
    return list;
}

function drawGroup(group, layout, all) {
    const drawSign = ({ op, note }) => el("span",
        { class: `op ${/^[()]$/.test(op) ? "paren" : isPower({ op }) ? "power" : /^[a-z]{3}/.test(op) ? "fn" : ""}` }, op,
        note && !layout.isTight && el("small", {}, note));
    const n = group.findIndex(item => item.table), before = n < 0 ? group : group.slice(0, n);
    const isNext = layout.wraps && /^, /.test(before[0]?.op); /* where a name before it comes from: a gap instead of a comma, which would begin a line */
    if (isNext) before[0] = { op: before[0].op.slice(2) };
    return el("div", { class: isNext ? "item next" : "item" }, (before.length > 0 || layout.wraps) &&
        el("span", { class: "ops" }, before.map(drawSign)),
        n >= 0 && drawTable(group[n].table, layout, all), n >= 0 && group.slice(n + 1).map(drawSign));
}

/* One panel of a view, or all of them side by side. */
function drawTable(view, layout, all) {
    const panels = all ? range(view.panels, p => p) : [Math.min(state.panel, view.panels - 1)];
    const chars = Math.max(1, ...view.numbers.map(x => fix(x, view.format).length));
    view.largest = largestOf(view.numbers.filter(x => Math.abs(x) <= 1e4));
    const grids = panels.map((p, n) => drawGrid(view, layout, p, chars, n > 0));
    const many = panels.length > 1 ? panels.map((p, n) => el("div", {},
        el("small", { class: "head" }, panelName(view.t, p)), grids[n])) : grids;
    return el("figure", { class: `tab ${view.isMain ? "main" : view.isSmall ? "small" : view.isMean ? "mean" : ""}`, "data-of": view.of,
        "data-shows": view.shows },
        el("figcaption", {}, view.plainName ? el("b", {}, prose(view.name)) : view.isFrom
            ? el("b", {}, "from ", nameEl(view.name)) : nameEl(view.name, "b"),
            view.format.e !== 0 && el("small", { class: "ten" }, "× 10" + superscript(view.format.e)),
                el("small", {}, view.note)),
        el("div", { class: "panels", ...widthInView(view, layout) }, view.t.value.length ? many : el("small", { class: "soft" }, "no elements")));
}

/* What style sheets need to cut a wide table off: how many columns are in view, and how many pixels are beside them. */
const widthInView = (view, { most }) => (isCut(view, most) ? { "--in-view": columnsOf(view, most),
    "--side": `${NEXT_COLUMN + sideOf(view, false, enlarged())}px` } : {});

/* isNext: it stands beside another panel, and may leave out the words of its rows. */
function drawGrid(view, layout, p, chars, isNext) {
    const { rows, columns, rowWords, columnWords } = view, isWide = isCut(view, layout.most),
        isNumbered = columns > (rowWords ? FEW_COLUMNS : 1);
    const labels = rowLabels(view) && !(layout.isTight && (view.repeats || isNext)), only = view.onlyRow;
    const shown = only === undefined ? range(rows, r => r) : [Math.min(only, rows - 1)];
    const top = c => el("span", { class: `h top ${columnWords ? "word" : layout.isTall ? "tall" : ""}` },
        columnWords ? columnWords[c] : isNumbered ? String(c) : " ");
    return el("div", { class: "grid" + (isWide ? " wide" : ""), role: "grid", onscroll: isWide ? drawCurves : null,
        "aria-label": plain(view.name), "--cols": columns, "--chars": chars },
    !view.isSmall && (columnWords || isNumbered || layout.heads) &&
        el("div", { class: "r", "aria-hidden": "true" }, labels && el("span", { class: "h" }), range(columns, top)),
    shown.map(r => el("div", { role: "row", class: "r" },
        labels && el("span", { class: "h" + (rowWords ? " word" : ""), "aria-hidden": "true" }, rowWords ? rowWords[r] : String(r)),
        range(columns, c => drawCell(view, view.at(p, r, c))))));
}

/* The right number has its own digits: those of the table are of the wrong ones, which can be far smaller. */
const wrongWords = ({ right }, i) => `wrong: ${written(right[i], decimalsOf(right))} is right`;

function drawCell(view, i) {
    const x = view.numbers[i], key = view.key(i), secret = isSecret(view, i),
        reason = x === 0 && !secret ? view.reason(i) : "";
    const isPicked = secret && view.isMain && isAskedFor(key) && state.lesson.picks.has(key);
    const text = isPicked ? "0" : secret ? "?" : fix(x, view.format), isPlain = isWhole(view.t.type) && view.of === "v";
    const largest = Math.abs(x) > 1e4 ? Math.abs(x) : view.largest;
    const isOff = !secret && !!view.off && view.off.has(i),
        wrong = isOff ? wrongWords(view, i) : "";
    const shown = isPicked ? "you say 0" : secret ? "to be found" : text;
    const words = [`${plain(view.name)}${placeWords(view, i)}: ${shown}`, reason, wrong].filter(Boolean).join(", ");
    const isTyped = view.of === "v" && Controls.isTyped(view.t, i),
        mark = (/^(masked|dropped)/.exec(reason) || [""])[0];
    return el("div", { role: "gridcell", tabindex: "-1", "data-key": key, "data-i": i, "aria-label": words,
        title: !secret && [reason, wrong].filter(Boolean).join("; "),
        class: ["c", secret ? "secret" : isPlain ? "" : x > 0 ? "pos" : x < 0 ? "neg" : "zero", mark,
            isTyped && "typed", isPicked && "picked", isOff && "off"].filter(Boolean).join(" "),
        "--a": secret ? 0 : strengthOf(x, largest, view.top).toFixed(3) }, el("span", {}, text));
}
