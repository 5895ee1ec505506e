// Package plugin is kubectl jobpolicy: it tells people why a Job is in its state, what
// happens next, and what would happen in other circumstances.
//
// A command reads its flags, calls the package that does the work (engine/simulate,
// manifest and others), and prints. Text is for people and may change; -o json and
// -o yaml are for programs.
package plugin
