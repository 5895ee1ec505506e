// Package schedule compares the engine's reading of schedules with that of the
// API server and the built-in controller: the same texts are admitted, with the
// same words where they are not, and the same times are due.
package schedule
