/* share.js - a link to what is shown, the step as a picture (SVG), and the lesson on paper. */
"use strict";

function drawShare() {
    const input = el("input", { type: "text", readonly: true, value: location.href, class: "wide",
        "aria-label": "a link to what you see" });
    const said = el("span", { class: "said", role: "status" }),
        button = (text, onclick, disabled) => el("button", { onclick, disabled }, text);
    const copy = async () => {
        input.select();
        try {
            await navigator.clipboard.writeText(input.value);
        } catch {
            document.execCommand("copy"); /* a page from the disk may have no clipboard */
        }
        said.textContent = "Copied.";
    };
    const presents = el("input", { type: "checkbox", onchange: () =>
        (input.value = location.href + (presents.checked ? (location.hash ? "" : "#") + "&present" : "")) });
    return [el("h2", {}, "A link to what you see"), el("div", { class: "fields" }, input, button("copy", copy),
        !isPlaying() && el("label", {}, presents, "in present mode"), said),
        el("div", { class: "buttons" },
        !isPlaying() && [button("save this step as SVG", saveStep, !picture),
            button("print the lesson", () => printAs("lesson")),
        button("print a worksheet", () => printAs("worksheet"))]),
            !isPlaying() && el("p", {},
            "A worksheet has all steps, with every computed table left empty; the answers begin on a page of their own.")];
}

function saveStep() {
    const text = new XMLSerializer().serializeToString(svgOf(byId("step"))),
        link = el("a", { download: `step-${state.lesson.name}-${stepNow().id}.svg`,
        href: "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text) });
    link.click();
}

/* What an element shows, as shapes: each cell a rectangle, each piece of text a text, each curve a path. */
function svgOf(box) {
    const frame = box.getBoundingClientRect(), width = Math.ceil(frame.width),
        parts = [...box.querySelectorAll(".c, .op, .terms > *, .h, h2")];
    const height = Math.ceil(Math.max(...parts.map(each => each.getBoundingClientRect().bottom)) - frame.y) + 4;
    const background = getComputedStyle(document.body).backgroundColor;
    const out = svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `-8 -8 ${width + 16} ${height + 16}`,
        width: width + 16, height: height + 16 },
        svg("rect", { x: -8, y: -8, width: width + 16, height: height + 16, fill: background }));
    for (const path of byId("curves").children) {
        const copy = path.cloneNode();
        copy.removeAttribute("class");
        for (const name of path.tagName === "path" ? ["stroke", "opacity", "fill"]
            : ["fill", "opacity"]) copy.setAttribute(name, getComputedStyle(path)[name]);
        out.append(copy);
    }
    for (const cell of box.querySelectorAll(".c")) {
        const r = cell.getBoundingClientRect(), style = getComputedStyle(cell),
            isMarked = cell.matches(".chosen, .source");
        const [, colour] = /linear-gradient\((rgba?\([^)]*\))/.exec(style.backgroundImage) || [];
        const place = { x: r.x - frame.x, y: r.y - frame.y, width: r.width, height: r.height, rx: 4 };
        out.append(svg("rect", { ...place, fill: style.backgroundColor }),
            svg("rect", { ...place, fill: colour || "none",
            stroke: isMarked ? style.color : "none", "stroke-width": cell.matches(".chosen") ? 3 : 2 }));
    }
    const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) out.append(...textsIn(node, frame));
    return out;
}

/* A text node as texts, one for each line that it stands in. */
function textsIn(node, frame) {
    const { parentElement } = node, range = document.createRange(), style = getComputedStyle(parentElement), list = [];
    if (!node.data.trim() || parentElement.closest("details, form, [hidden]")) return [];
    const { fontSize, fontFamily, fontStyle, fontWeight, color } = style;
    range.selectNodeContents(node);
    for (const r of [...range.getClientRects()].slice(0, 1)) {
        if (!r.width) continue;
        list.push(svg("text", { x: r.x - frame.x, y: r.y - frame.y + r.height * 0.78, fill: color,
            "font-size": fontSize, "font-family": fontFamily,
            "font-style": fontStyle, "font-weight": fontWeight, "xml:space": "preserve" }, node.data));
    }
    return list;
}
