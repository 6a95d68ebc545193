package mutant

// without is the rule that this build goes without. Command test/faults/mutant builds
// others: it puts another file in the place of this one.
const without = ""
