package faults

import (
	"net/http"
	"strings"
)

// A Call is one request to the API server, in the API's words.
type Call struct {
	// Verb is get, list, watch, create, update, patch or delete.
	Verb string
	// Resource has its subresource with it: pods, jobs/status.
	Resource string
	// Name is that of the object; empty for create, list and watch.
	Name string
	// Query is the request's, undecoded.
	Query string
}

// callOf reads a request. Paths of the API look like
// /apis/batch/v1/namespaces/NS/jobs/NAME/status.
func callOf(r *http.Request) Call {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) > 0 && parts[0] == "apis" {
		parts = parts[1:]
	}
	parts = parts[min(2, len(parts)):]
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	c := Call{Query: r.URL.RawQuery}
	if len(parts) > 0 {
		c.Resource = parts[0]
	}
	if len(parts) > 1 {
		c.Name = parts[1]
	}
	if len(parts) > 2 {
		c.Resource += "/" + parts[2]
	}
	c.Verb = verbOf(r, c.Name)
	return c
}

func verbOf(r *http.Request, name string) string {
	switch {
	case r.Method == http.MethodPost:
		return "create"
	case r.Method == http.MethodPut:
		return "update"
	case r.Method != http.MethodGet:
		return strings.ToLower(r.Method)
	case r.URL.Query().Get("watch") != "":
		return "watch"
	case name == "":
		return "list"
	default:
		return "get"
	}
}

// A Match selects calls. An empty field selects any.
type Match struct{ Verb, Resource, Name string }

// The writes of an executor.
var (
	Creations = Match{Verb: "create", Resource: "pods"}
	Releases  = Match{Verb: "patch", Resource: "pods"}
	Statuses  = Match{Verb: "update", Resource: "jobs/status"}
)

func (m Match) fits(c Call) bool {
	return fits(m.Verb, c.Verb) && fits(m.Resource, c.Resource) && fits(m.Name, c.Name)
}

func fits(want, have string) bool { return want == "" || want == have }

// A Record is a completed call.
type Record struct {
	Call
	// Code is the status code of the API server's answer, whether or not the executor
	// got it; 0 if the call never reached the server.
	Code int
}
