// Package oldertypes runs the executor, compiled with the Kubernetes types of an older version, with a newer API
// server.
package oldertypes
