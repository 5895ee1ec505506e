// Package playground answers the page of the playground: it plays a Job in virtual time
// against the engine, and says when a CronJob runs. Its answer depends only on the page's
// input. The page calls it in the browser, as WebAssembly (cmd/jobpolicy-playground).
package playground
