/* faults.js - what tests/page/test appends to a copy of a page, behind common.js: faults that were found once. WALK.parts: which
 * ones are looked for. */
const said = $("#play-off").textContent; /* before the library is there */
const box = each => each.getBoundingClientRect(), seen = selector => all(selector).filter(each => each.getClientRects().length > 0);

/* The one heading of a view. */
function oneHeading(what) {
    const headings = seen("h1").filter(each => !each.closest("#paper"));
    expect(headings.length === 1 && headings[0].textContent.trim().length > 3, `${what}: ${headings.length} h1: ${headings.map(each => each.textContent)}`);
}

/* On a phone: whatever a finger touches has 44 pixels, but links in running text, cells, and the tables of the tape, which the
 * bar leads to, too. The counter is one line, and no card and no line of algebra is cut. */
function lookPhone() {
    settleMotion();
    for (const each of seen("button, select, textarea, summary, [role=slider], input, label:has(input)")) {
        const { width, height } = box(each), { visibility } = getComputedStyle(each), isMark = each.matches("[type=checkbox], [type=radio]");
        expect(each.closest("#picture") || isMark || visibility === "hidden" || Math.min(width, height) > 43.5, `${where()}: ${each.id || each.className || each.tagName} ${each.textContent.slice(0, 20)} has ${width.toFixed(0)} x ${height.toFixed(0)} pixels`);
    }
    for (const each of seen(".keep, .algebra, #rule-form, #count, #panel"))
        expect(each.scrollWidth <= each.clientWidth + 1, `${where()}: ${each.id || each.className} is cut off`);
    expect(!seen("#count").length || box($("#count")).height < 24, `${where()}: ${$("#count").textContent} needs two lines`);
    lookWide();
}

const parts = {
    async phone() {
        for (const { name } of [...lessons]) for (const hides of ["", "&hide"]) {
            await go(`#${name}/0${hides}`);
            if (state.keys) press("k");
            for (lookPhone(); !isLastStep(); lookPhone()) press("ArrowRight");
            state.hide = false;
        }
        for (const id of ["b-help", "b-share", "b-example"]) {
            $("#" + id).click();
            lookPhone();
        }
        $("#help").close();
        const lesson = $("#lessons");
        expect(seen("#lessons").length && !seen("#tabs a").length && lesson.value === state.lesson.name, `the lesson is no choice, or says ${lesson.value}`);
        lesson.focus();
        lesson.value = "6";
        lesson.dispatchEvent(new Event("change", { bubbles: true }));
        await wait(20);
        press("ArrowRight", document.activeElement);
        expect(/^#6\/f/.test(where()), `the choice of lesson 6 and a step lead to ${where()}`);
        await go("#play");
        lookPhone();
        expect(lesson.value === "play", "the choice does not say that this is the playground");
    },
    /* Forced colours: what was only a shade or a colour has an outline, or keeps its colour; the charts say which line is which. */
    async forced() {
        const style = selector => getComputedStyle($(selector)), outlined = selector => expect(style(selector).outlineStyle === "solid", `${where()}: ${selector} is only a colour`);
        expect(matchMedia("(forced-colors: active)").matches, "the colours are not forced");
        await go("#2/card");
        outlined(".keep .now");
        await go("#6/twice");
        $(".code button").click();
        outlined(".code .last");
        await go("#2/b3.0.4&rule=A: y * dy");
        await wait(400);
        outlined("#step .looks [aria-pressed='true']");
        expect(style(".c.off").outlineStyle === "dotted" && style("#rule-text").borderStyle === "dashed", "a wrong number, or a wrong rule, is only a colour");
        for (const name of ["", ".wrong"]) expect(style(`.training span${name || ":not(.wrong)"}`).borderLeftColor === style(`.training polyline${name || ":not(.wrong)"}`).stroke, "the chart does not say which line is which");
        expect(style(".training span.wrong").borderLeftColor !== style(".training span:not(.wrong)").borderLeftColor, "both lines of the chart have one colour");
        await go("#play");
        for (let n = 0; n < 300 && !$("#play-map td.pos"); n++) await wait(10);
        expect(/rgba/.test(style("#play-map td.pos").backgroundColor), "the weights of the playground have no shade");
    },
    /* Zoom 200 % of a window of 1280 by 720: the tape folds, and a table can be seen. */
    async low() {
        for (const id of ["f3", "b3.0.4", "b4.1"]) {
            await go(`#2/${id}`);
            const table = box($("#step .tab.main .grid")), ends = Math.min(innerHeight, ...seen("#bar, #terms").filter(each =>
                /fixed|sticky/.test(getComputedStyle(each).position)).map(each => box(each).top));
            expect(!seen("#machine").length, `${where()}: the tape stands in a low window`);
            expect(table.top > 0 && table.bottom <= ends, `${where()}: the table ends at ${table.bottom}, of ${ends}`);
            press("t");
            expect(seen("#machine").length === 1, `${where()}: t does not show the tape`);
            $("#tape").click();
            expect(!seen("#machine").length, `${where()}: the button does not fold the tape`);
            state.tape = null;
            lookWide();
        }
    },
    /* A projector: the rule of softmax is a line, help and wrong rules are a button away, and legible. */
    async projector() {
        await go("#2/b3.0.4&present"); /* a nudge comes before it */
        press("h");
        const tables = seen("#step .tab");
        expect(tables.length === 4 && new Set(tables.map(each => Math.round(box(each).top / 40))).size === 1, "the rule of softmax falls apart");
        expect(seen("#bar #b-help").length === 1, "a class has no help");
        $("#b-help").click();
        expect($("#letters").textContent.includes("2/n E"), `the help says ${$("#letters").textContent}`);
        expect($("#help").open && parseFloat(getComputedStyle($("#help p")).fontSize) > 17, "the help is small, or has no button");
        $("#help").close();
        expect(seen("#rule-text").length === 1 && parseFloat(getComputedStyle($("#rule-text")).fontSize) > 17, "the box for a rule is small, or is not there");
        $("#rule-text").value = "A * dA";
        press("Enter", $("#rule-text"));
        expect(isPresenting() && $("#door .tick.wrong"), "a class cannot be shown a wrong rule");
        Controls.startAgain();
        const { right } = box($("#exit"));
        expect(right <= innerWidth && seen("#bar > button").every(each => box(each).width >= 23.5), `the bar ends at ${right}`);
        $("#exit").click();
        expect($("header #b-help") && !seen("#bar #b-help").length, "the buttons do not come back");
    },
    /* A new step is read from its top, by a key and by a link. */
    async scrolls() {
        const room = el("div");
        room.style.height = "2000px";
        $("#below").append(room);
        await go("#2/f3");
        scrollTo(0, 150);
        press("ArrowRight");
        expect(scrollY <= $("#machine").offsetTop, `a key: the page is scrolled by ${scrollY}`);
        scrollTo(0, 900);
        await go("#2/b4.1");
        expect(scrollY <= $("#machine").offsetTop, `a link: the page is scrolled by ${scrollY}`);
        room.remove();
    },
    /* A right answer moves nothing. */
    async answers() {
        for (const lesson of lessons.slice()) for (const [n, question] of (lesson.questions || []).entries()) {
            await go(`#${lesson.name}/f0`);
            await go(`#${lesson.name}/${question.at}`);
            const form = state.lesson.forms[n], at = () => Math.round(box($("#below")).top + scrollY);
            if (!form || question.kind === "choice") continue;
            const before = at();
            form.querySelector("[data-reveal]").click();
            await wait();
            expect(at() === before, `${where()}, question ${n + 1}: the tape moves from ${before} to ${at()}`);
        }
    },
    /* A step that is not there is said; each view has one h1; a step is read out. */
    async words() {
        await go("#2/zz");
        expect($("#notice").textContent === "Lesson 2 has no step “zz”: this is its start.", `#2/zz: ${$("#notice").textContent}`);
        oneHeading("a cover");
        for (const long of [`#2/${"z".repeat(2000)}`, `#2/b3.0&${"x".repeat(2000)}`, `#2/b3.0&words=${"y".repeat(2000)}`, `#2/b3.0&rule=A:${"dA*".repeat(800)}`]) {
            await go(long);
            expect($("#notice").textContent.length > 20, `${long.slice(0, 30)}…: nothing is said of it`);
            lookWide();
        }
        await go("#2/b3.0.4");
        expect(!$("#notice").textContent, "a step that is there is not found");
        oneHeading("a step");
        const announced = $("#announce").textContent;
        for (const words of ["backward 5 of 9", "sum(A", "= 1.22", "For a smaller loss"]) expect(announced.includes(words), `${words} is not announced: ${announced}`);
        press("h");
        expect(!$("#announce").textContent.includes("1.22"), "a hidden number is announced");
        press("h");
        await go("#3/b3.0");
        expect(placeWords(picture.main, 1) === "[pad, the]", `brackets: ${placeWords(picture.main, 1)}`);
        for (const tab of all("#tabs a:not(.playtab)")) expect(/^\w+: \w+/.test(tab.getAttribute("aria-label")), `a lesson has the name ${tab.getAttribute("aria-label")}`);
        await go("#2/b3.0&rule=A:%20A*(1-A)*dA");
        expect(/This is A \* \(1 - A\) \* dA/.test($("#rule-said").textContent) && !/squared/.test($("#rule-said").textContent), $("#rule-said").textContent);
        await go("#2/b1.1&break=transpose");
        await go(`#2/${state.lesson.steps.find(each => each.check === "wrong").id}&break=transpose`);
        expect(/shape of K\b/.test($("#rule-said").textContent) && !/\bd?[xy]\b/.test($("#rule-said").textContent), $("#rule-said").textContent);
        await go("#2");
    },
    /* The limit of each size. */
    async limits() {
        await go("#5");
        $("#b-example").click();
        const input = $("#set-heads"), set = value => {
            input.value = value;
            input.dispatchEvent(new Event("change"));
        };
        expect(input.max === "4" && input.parentElement.textContent.includes("1 to 4"), `the limit of heads is ${input.parentElement.textContent}`);
        set("5");
        expect($("#changed").textContent === "lesson 5: 5 heads are too many here: at most 4.", $("#changed").textContent);
        set("1e300");
        expect($("#changed").textContent === 'heads is "1e300": it must be an integer from 1 to 64.', $("#changed").textContent);
        Controls.startAgain();
        press("Escape");
    },
    /* 4 heads can be told apart, on the cover and at a step. */
    async heads() {
        for (const id of ["0", "f17"]) {
            await go(`#5/${id}&heads=4`);
            const buttons = seen("#step .heads button").map(box);
            if (id !== "0") expect(buttons.length === 4, `${id}: ${buttons.length} heads`);
            for (const each of seen("#step .heads button")) expect(each.scrollWidth <= each.clientWidth + 1, `${id}: ${each.textContent} does not fit`);
            buttons.forEach((a, n) => expect(a.right <= innerWidth && buttons.slice(n + 1).every(b => b.left >= a.right || b.top >= a.bottom || b.right <= a.left), `${id}: head ${n + 1} lies over another`));
            for (const group of seen("#step .heads")) { /* where there is less room they stand in two rows */
                group.style.width = "180px";
                expect(group.scrollWidth <= group.clientWidth + 1, `${id}: the heads leave their place, ${group.scrollWidth} pixels in ${group.clientWidth}`);
            }
        }
        await go("#5");
    },
    /* The picture of the tape, made on a cover, ends inside the window at each step. */
    async covers() {
        for (const { name } of lessons.slice()) {
            await go(`#${name}`);
            press("ArrowRight");
            const { right } = box($("#picture")), last = Math.max(...all("#picture .node").map(each => box(each).right)), { scrollWidth, clientWidth } = $("#picture");
            await go(`#${name}/f1`);
            buildMachine();
            expect(scrollWidth - clientWidth === Math.max(0, $("#picture").scrollWidth - clientWidth), `#${name} from its cover: the tape is ${scrollWidth} wide, of ${clientWidth}; made here it is ${$("#picture").scrollWidth}`);
            expect(scrollWidth > clientWidth || last <= right, `#${name} from its cover: the last table ends at ${last}, of ${right}`);
        }
        await go("#2");
    },
    /* The browser's Back goes by step. */
    async back() {
        for (const id of ["f4", "f1", "f2"]) await go(`#2/${id}`);
        press("ArrowRight");
        press("ArrowRight");
        const passed = ["#2/f3", "#2/f2"];
        for (const address of passed) {
            history.back();
            for (let n = 0; n < 300 && where() !== address; n++) await wait(10);
            await wait(20);
            expect(where() === address && state.step === stepOf(state.lesson, address.slice(3)), `Back leads to ${where()}, and not to ${address}`);
        }
    },
    /* A page that a browser saved begins with the row that stood there. */
    async again() {
        const ids = () => all("[id]").map(({ id }) => id).filter((id, n, them) => them.indexOf(id) !== n);
        beginDoor();
        drawAgain();
        expect(ids().length === 0, `two elements are called ${ids()}`);
    },
    /* The playground's tab. */
    async play() {
        expect(/loading/.test(said), `before the library is there the playground says ${said}`);
        await go("#play");
        for (let n = 0; n < 300 && !seen("#play-on").length; n++) await wait(10);
        oneHeading("the playground");
        scrollTo(0, 0);
        location.hash = "#2/b3.0&rule=A: y * dy";
        await wait(20);
        location.hash = "#play";
        await wait(50);
        expect(!$(".node.spoiled"), "a wrong rule of a lesson marks tables of the playground");
        location.hash = "#play";
        $("#tabs .playtab").click();
        await wait(50);
        expect(scrollY === 0 && !document.getElementById("play"), `the tab of the playground scrolls by ${scrollY}`);
    },
};

begin(async () => {
    for (const part of WALK.parts) await parts[part]();
});
