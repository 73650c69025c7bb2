/* share.js - the panel of what leaves the page: a link to what is shown, the step as a picture, the lesson on paper. */
"use strict";

function drawShare() {
    const input = el("input", { type: "text", readonly: true, value: location.href, class: "wide",
        "aria-label": "a link to what you see" });
    const said = el("span", { class: "said", role: "status" });
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
    const link = [el("h2", {}, "A link to what you see"), el("div", { class: "fields" }, input, button("copy", copy),
        !isPlaying() && el("label", {}, presents, "in present mode"), said)];
    if (location.protocol === "file:") link.push(el("p", {}, "This page is a file of yours: the link opens it on this machine " +
        "alone. ", el("code", {}, "build/explain --page FILE.html"), " writes it as one file. Put that on any web server, open it " +
        "there, and copy the link again: it then works for a class."));
    if (isPlaying()) return link;
    const all = el("input", { type: "checkbox", id: "all-steps" });
    return [...link, el("div", { class: "buttons" }, button("save this step as SVG", saveStep, { disabled: !picture && !byId("print-card") }),
        button("on a projector (p)", () => present(), { id: "present" }), button("print the lesson", () => printAs("lesson")),
        button("print a worksheet", () => printAs(all.checked ? "worksheet of all steps" : "worksheet")),
        el("label", {}, all, "of all steps, not of the key steps alone")),
    el("p", {}, "A worksheet gives what a step starts from, and leaves its result empty; the answers have a page of their own.")];
}
