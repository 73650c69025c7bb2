"""rulebox.py - what page-test --sabotage breaks in the box for a rule and in the exercises, one at a time: test_rules must see
each. Scripts in a page have no indentation."""

SABOTAGE = {
    'a wrong number is not marked': lambda s: s.replace('isOff && "off"', '"off" && ""'),
    'the right number is another': lambda s: s.replace('(step.right || step.part.dx).map(Number)', '(step.right || step.part.dx).map(x => Number(x) + 1)'),
    'a mistake has no name': lambda s: s.replace('planted.why && [transposes(', 'planted.nothing && [transposes('),
    'an error spoils the page': lambda s: s.replace('if (refused) return sayError(refused.replace(', 'if (refused) void sayError(refused.replace('),
    'the place of an error is not marked': lambda s: s.replace('mirrorText(at);', 'mirrorText(0);'),
    'a link loses the rule': lambda s: s.replace('if (isRule(key)) return `&rule=', 'if (isRule(key)) return "" && `&rule='),
    'an old link loses the rule': lambda s: s.replace('alias = { break: "rule" }', 'alias = {}'),
    'the box keeps the focus': lambda s: s.replace('mirrorText();\n    byId("step").focus({ preventScroll: true });', 'mirrorText();'),
    'the box loses its keys': lambda s: s.replace('target.closest("select, textarea, dialog', 'target.closest("select, dialog'),
    'take back does nothing': lambda s: s.replace('if (place) Controls.plantRule(place, null);', 'void place;'),
    'a phone would zoom': lambda s: s.replace('font: max(16px, 1rem)/22px', 'font: 14px/22px'),
    'the title tells the rule': lambda s: s.replace('rule: [nameEl(main.name), " = ", planted ? formulaEl(planted.formula) : "?"]', 'rule: pictureOf(step).rule'),
    'the tables tell the rule': lambda s: s.replace('items: [{ table: main }, sign("←"), { table: dy }],', 'items: pictureOf(step).items,'),
    'the words tell the rule': lambda s: s.replace('if (isRuleHidden(step)) return drawWordsOfExercise(box, step);', ''),
    'the C tells the rule': lambda s: s.replace('const isHidden = !step.unit || isRuleHidden(step);', 'const isHidden = !step.unit;').replace('drawWordsOfWrong(planted), drawEnd());', 'drawWordsOfWrong(planted), drawEnd(), drawProgram(step));'),
    'the box tells the rule': lambda s: s.replace('if (isExercise()) return done ? done.formula : "";', ''),
    'a wrong rule is written': lambda s: s.replace('verdict === "right" && !why;', 'true;'),
    'no hint comes': lambda s: s.replace('(tries.get(place.name) || 0) >= 2', 'false'),
    'a try stays behind': lambda s: s.replace('leaveTry();\n    const focus', 'const focus'),
    'the tally counts what was shown': lambda s: s.replace('?.isShown === false', ''),
}
