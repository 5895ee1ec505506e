package shadow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"text/tabwriter"
	"time"
)

type entryJSON struct {
	Object    string     `json:"object"`
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	UID       string     `json:"uid"`
	Kind      Kind       `json:"kind"`
	Rule      string     `json:"rule"`
	Detail    string     `json:"detail"`
	Why       string     `json:"why"`
	Since     time.Time  `json:"since"`
	Until     *time.Time `json:"until"`
}

// Handler answers GET with the differences that were found, as a table in plain text, or as
// a JSON list if the query is format=json. It lists at most 1,000. Those that still exist
// come first.
func (r *Report) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var body []byte
		kind := "text/plain; charset=utf-8"
		switch format := req.URL.Query().Get("format"); {
		case req.Method != http.MethodGet:
			http.Error(w, "only GET is allowed", http.StatusMethodNotAllowed)
			return
		case format == "json":
			kind, body = "application/json", r.json()
		case format == "":
			body = r.table()
		default:
			http.Error(w, fmt.Sprintf("format must be json or be left out, is %q", format), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", kind)
		if _, err := w.Write(body); err != nil {
			r.cfg.Logger.DebugContext(req.Context(), "reader of differences went away", slog.Any("error", err))
		}
	})
}

func (r *Report) json() []byte {
	list := []entryJSON{}
	for _, e := range r.Entries() {
		row := entryJSON{
			Object: e.Type, Namespace: e.Namespace, Name: e.Name, UID: string(e.UID),
			Kind: e.Kind, Rule: e.Rule, Detail: e.Detail, Why: e.Why, Since: e.Since,
		}
		if !e.Until.IsZero() {
			row.Until = &e.Until
		}
		list = append(list, row)
	}
	body, err := json.Marshal(list)
	if err != nil {
		panic("strings and times marshal: " + err.Error())
	}
	return body
}

func (r *Report) table() []byte {
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "OBJECT\tNAMESPACE\tNAME\tWOULD\tRULE\tSINCE\tUNTIL\tDETAIL\tWHY")
	for _, e := range r.Entries() {
		until := "-"
		if !e.Until.IsZero() {
			until = e.Until.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			e.Type, e.Namespace, e.Name, e.Kind, e.Rule, e.Since.UTC().Format(time.RFC3339), until, e.Detail, e.Why)
	}
	w.Flush() // A buffer takes everything.
	return out.Bytes()
}
