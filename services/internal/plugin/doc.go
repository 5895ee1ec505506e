// Package plugin is kubectl jobpolicy: it tells people why a Job is where it is,
// what comes next, and what would happen if.
//
// A command reads its flags, asks a package that knows the matter (simulate of the
// engine, manifest, …), and prints. Text is for people and may change; -o json and
// -o yaml are for programs.
package plugin
