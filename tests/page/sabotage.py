"""sabotage.py - how `page-test --sabotage` breaks a page: what is broken, the test that must see it, and the change of the
page's text. The text is that of the page unpacked: without comments and indentation."""
import re

import rulebox


def a_number(source, key):
    """The first number after the key, in the data, another one."""
    return re.sub(r'("%s":\s*\[)[^,\]]+' % key, r"\g<1>0.1234567", source, count=1)


def sabotages(test_content, test_form, test_live, test_rules, test_refused, test_play):
    """What is broken: (the test that must see it, the change)."""
    return {
        "the gradient in the data is another": (test_content, lambda s: a_number(s, "grad")),
        "dx in the data is another": (test_content, lambda s: a_number(s, "dx")),
        "a Jacobian in the data is another": (test_content, lambda s: re.sub(r'("jacobian":\s*\[\[\d+,\s*)[^,\]]+', r"\g<1>7.5", s, count=1)),
        "a check in the data is bad": (test_content, lambda s: re.sub(r'("worst":\s*)[^,]+', r"\g<1>0.1", s, count=1)),
        'a value is rounded otherwise': (test_content, lambda s: s.replace('(a / 10 ** e).toFixed(d)', '(a * 1.02 / 10 ** e).toFixed(d)')),
        'the terms are another sum': (test_content, lambda s: s.replace('const times = (a, b) => [a, " × ", b];', 'const times = (a, b) => [a, " + ", b];')),
        'the mean of softmax is unweighted': (test_content, lambda s: s.replace('y.value[r * C + c] * y.grad[r * C + c]', 'y.grad[r * C + c] / C')),
        'a factor is that of another cell': (test_content, lambda s: s.replace('factor(dy, Y(p, n, m)), factor(other, B(p, k, m))', 'factor(dy, Y(p, n, 0)), factor(other, B(p, k, m))')),
        'an error in the script': (test_content, lambda s: s.replace('function showTerms() {', 'function showTerms() { nothing.there;')),
        'an error on the console': (test_content, lambda s: s.replace('function showTerms() {', 'function showTerms() { console.error("x");')),
        'a picture from elsewhere': (test_content, lambda s: s.replace('<body>', '<body><img src="https://example.org/x.png">')),
        'a font from elsewhere': (test_content, lambda s: s.replace('</style>', '@font-face { src: url(x.woff) }</style>')),
        'a key does nothing': (test_content, lambda s: s.replace('ArrowRight: 1', 'ArrowRigth: 1')),
        'the arrows leave a grid': (test_content, lambda s: s.replace('|| moveInGrid(cell, key)', '|| false')),
        'the address is not written': (test_content, lambda s: s.replace('history.replaceState(', 'String(')),
        'a button keeps the arrows': (test_content, lambda s: s.replace('const needsKeys = target => target.closest("select,', 'const needsKeys = target => target.closest("button, select,')),
        'old addresses lead to the start': (test_content, lambda s: s.replace('countedSteps(lesson) : null', '[] : null')),
        'a word of an address is ignored in silence': (test_content, lambda s: s.replace('unknown.push(word)', 'void word')),
        'every answer is right': (test_content, lambda s: s.replace('const { isRight, words } = check()', 'const { isRight = true, words } = { ...check(), isRight: true }')),
        'a cell cannot be said to be 0': (test_content, lambda s: s.replace('if (!picks.delete(key)) picks.add(key);', '')),
        'abc is only wrong': (test_content, lambda s: s.replace('notYet("That is no number.")', 'notYet("Not yet.")')),
        'an empty answer is only wrong': (test_content, lambda s: s.replace('notYet("Enter a number first.")', 'notYet("Not yet.")')),
        'an answer vanishes': (test_content, lambda s: s.replace('(state.lesson.forms[n] ??= newQuestion(question, n))', 'newQuestion(question, n)')),
        'what is to be predicted is shown': (test_content, lambda s: s.replace('view.isMain && canPredict(step)', 'false')),
        'the words tell what is to be predicted': (test_content, lambda s: s.replace('const isHidden = isHiding() && canPredict(step)', 'const isHidden = false')),
        'the picture tells what is to be predicted': (test_content, lambda s: s.replace('"secret-v": isHidden', '"secret-v": false && isHidden')),
        'Tab reaches each cell': (test_content, lambda s: s.replace('each.tabIndex = each === stop ? 0 : -1', 'each.tabIndex = 0')),
        'Esc loses the focus': (test_content, lambda s: s.replace('byId("step").focus({ preventScroll: true });\nchoose(null);', 'cell.blur();\nchoose(null);')),
        'a button has no name': (test_content, lambda s: s.replace('aria-label="One step on"', '')),
        'a button is small': (test_content, lambda s: s.replace('#predict, #tape, #keys { color', '#predict { height: 12px !important; } #tape { color')),
        'a step is cut off': (test_content, lambda s: s.replace('height = Math.max(least * enlarged(), height - Math.max(0.5, over() * (height + 2) / items.clientHeight))', 'height = 160')),
        'nothing is announced': (test_content, lambda s: s.replace('byId("announce").textContent =', 'void')),
        'a wrong lesson is not said': (test_content, lambda s: s.replace('`There is no lesson ${', '`${')),
        'nothing at the end of a lesson': (test_content, lambda s: s.replace('"The end of this lesson. "', '""')),
        'a presented step is cut off': (test_form, lambda s: s.replace('if (drawAll() > 0 && state.tape', 'if (drawAll() > 0 && false && state.tape')),
        'a clicker shows nothing': (test_form, lambda s: s.replace('state.hide && revealStep()', 'false')),
        'key steps are all steps': (test_form, lambda s: s.replace('while (keys && n > 0', 'while (false && n > 0')),
        'a group cannot be unfolded': (test_content, lambda s: s.replace('lesson.open.add(group.id)', 'void group')),
        'a step has another name': (test_content, lambda s: s.replace('id: "b" + id', 'id: "c" + id')),
        'a small table is cut': (test_form, lambda s: s.replace('</style>', '@media (min-width: 1100px) { .panels { max-height: 90px } }</style>')),
        'a telephone scrolls sideways': (test_form, lambda s: s.replace('</style>', '@media (max-width: 400px) { main { width: 420px !important } }</style>')),
        'it moves with reduced motion': (test_form, lambda s: s.replace('prefers-reduced-motion: reduce)").matches', 'prefers-reduced-motion: reduce)").never')),
        'nothing moves': (test_form, lambda s: s.replace('.animate(', '.never?.(')),
        'dark is light': (test_form, lambda s: s.replace('(prefers-color-scheme: dark)', '(min-width: 99999px)')),
        'a deep link is ignored': (test_form, lambda s: s.replace('moved: false, guessed: null });\ndraw();', 'moved: false, guessed: null, step: 0 });\ndraw();')),
        'names are HTML': (test_form, lambda s: s.replace('function showTerms() {', 'function showTerms() { const x = document.querySelector("figcaption b"); x["inner" + "HTML"] = x.textContent;')),
        'nothing is printed': (test_form, lambda s: s.replace('"beforeprint"', '"beforepaint"')),
        'a control computes nothing': (test_live, lambda s: s.replace('else showLesson(lesson);', 'else void lesson;')),
        'a refused value stays': (test_live, lambda s: s.replace('if (!lesson) changes = before;', 'if (!lesson) void before;')),
        'a link loses the settings': (test_live, lambda s: s.replace(' : "") + Controls.suffix();', ' : "");')),
        'start again keeps a setting': (test_live, lambda s: s.replace('[...changes.keys()].map(key => [key, null])', '[...changes.keys()].slice(1).map(key => [key, null])')),
        'another cell gets the typed number': (test_live, lambda s: s.replace('`set ${index} ${value} ${name}`', '`set 0 ${value} ${name}`')),
        'no rule is broken': (test_live, lambda s: s.replace('filter(([key]) => rules && isRule(key))', 'filter(() => false)')),
        "a wrong rule's check is right": (test_live, lambda s: s.replace('return isTooLarge(part) && !isBroken(state.lesson) ? "unchecked" : "wrong";', 'return "right";').replace('if (isWrong(plantedFor(state.lesson, part))) return "wrong";', '')),
        'a large number makes a check red': (test_live, lambda s: s.replace('isTooLarge(part) && !isBroken(state.lesson)', 'false')),
        'two states are the same': (test_live, lambda s: s.replace('own.numbers.map((x, i) => x - numbers[i])', 'own.numbers.map(x => x - x)')),
        'the chart shows another step': (test_live, lambda s: s.replace('translate(${x(n)}', 'translate(${x(n + 1)}')),
        'a control is on without the library': (test_refused, lambda s: s.replace('disabled: !Controls.isLive()', 'disabled: false')),
        'a refusal stops the page': (test_refused, lambda s: s.replace('Live.refused = `This browser', 'throw `This browser')),
        'a refusal is not said': (test_refused, lambda s: s.replace('Live.refused = `This browser', 'void `This browser')),
        'the wrong pair is outlined': (test_play, lambda s: s.replace('isAnswer = j === run.map.right[i]', 'isAnswer = j === run.map.right[0]')),
        'a chunk is told to screen readers': (test_play, lambda s: s.replace('if (isTraining()) timer = setTimeout(tick, ', 'if (isTraining()) say(`Step ${run.step}.`), timer = setTimeout(tick, ')),
        'a recording is not replaced': (test_play, lambda s: s.replace('lessons.splice(former < 0 ? lessons.length : former, 1, lesson)', 'lessons.push(lesson)')),
        'the playground has no tape': (test_play, lambda s: s.replace('buildMachine(pictured, t => record(t.number));\n}', '}')),
        **{what: (test_rules, change) for what, change in rulebox.SABOTAGE.items()},
        'the module does not start': (test_live, lambda s: s.replace('exported._initialize();', 'exported._start();')),
    }
