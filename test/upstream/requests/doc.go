// Package requests holds what the executor asks against what the engine takes:
// no pod and no Job that the API server admits may make a request invalid, because
// the Job would never be decided on again.
package requests
