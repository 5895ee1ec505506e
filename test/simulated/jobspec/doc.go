// Package jobspec describes the fields of a Job's spec once, for all simulated clusters:
// how a value is drawn, what a spec has, how it gets simpler, and whether the field can end
// the Job. The generators, the tables of what was covered and the shrinkers of packages
// world and parity go through the table in fields.go, so a new field is a row there, a
// written case in parity, and a rule in the judges of world.
//
// A row draws nothing if its values depend on the clock or the controllers of a simulation:
// deadlines, times to live, selectors, and who manages the Job. Each simulation draws these.
package jobspec
