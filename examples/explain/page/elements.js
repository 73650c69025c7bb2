/* elements.js - makes elements of the page. Text of the data becomes text nodes only, so names may hold any characters. */
"use strict";

const byId = id => document.getElementById(id);
const isThere = x => x !== null && x !== undefined && x !== false && x !== "";

/* el("a", { href, onclick, "--width": "3px" }, "text", [more]): an attribute that is null, false or "" is left out. */
function el(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
        if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
        else if (name.startsWith("--")) element.style.setProperty(name, value);
        else if (isThere(value)) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat(Infinity).filter(child => child || child === 0));
    return element;
}

const button = (text, onclick, more) => el("button", { type: "button", onclick, ...more }, text);

const numberField = (label, size = 6, more) =>
    el("input", { type: "text", inputmode: "decimal", autocomplete: "off", size: String(size), "aria-label": label, ...more });

function svg(tag, attributes, ...children) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const name in attributes) element.setAttribute(name, attributes[name]);
    element.append(...children);
    return element;
}

const icon = id => svg("svg", { class: "icon", "aria-hidden": "true" }, svg("use", { href: "#" + id }));

/* Replaces what an element holds; what is false or "" is left out. */
const fill = (element, ...children) => element.replaceChildren(...children.flat(Infinity).filter(Boolean));

const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
const isNarrow = () => innerWidth < 700;
const isLowWindow = () => innerHeight < 500;
const canFold = () => isPresenting() || isLowWindow(); /* the picture of the tape */
/* Wide enough for a step that is not to be scrolled. */
const isWide = () => innerWidth >= (isPresenting() ? 1000 : 1100);
const isPresenting = () => document.documentElement.classList.contains("present");

/* Pixels for a length that the design gives for type of 16 pixels: present mode has larger type. */
const enlarged = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
