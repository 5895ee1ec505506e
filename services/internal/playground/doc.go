// Package playground answers the page of the playground: it plays a Job in virtual time
// against the engine, and says when the runs of a CronJob come. It is a pure function
// of what the page holds, and a page in a browser calls it by WebAssembly
// (cmd/jobpolicy-playground).
package playground
