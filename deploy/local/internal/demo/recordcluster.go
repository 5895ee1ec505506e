package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// recordedCommands are those of kubectl jobpolicy that are about all Jobs, or about the
// CronJob. somebody has no rights.
var recordedCommands = [][]string{
	{"preflight"},
	{"preflight", "-o", "wide"},
	{"preflight", "-o", "json"},
	{"preflight", "--namespace", namespace},
	{"preflight", "--as", "somebody"},
	{"preflight", "--namespace", namespace, "--as", "somebody"},
	{"preflight", "--probe"},
	{"decisions"},
	{"decisions", "-n", namespace, "-o", "json"},
	{"explain", "cronjob/hello", "-o", "wide"},
	{"next", "cronjob/hello", "-n", "2"},
}

// A clusterRecording is what API server and executor answered to these commands.
type clusterRecording struct {
	Now      time.Time  `json:"now"`
	Commands [][]string `json:"commands"`
	Answers  []answer   `json:"answers"`
}

// An answer is that to one request. Request has method, path and query, and who asked if it
// was not the administrator. A request that was sent several times has as many answers,
// except for lists: each is read once, so that all commands see the same moment.
type answer struct {
	Request string          `json:"request"`
	Code    int             `json:"code"`
	Body    json.RawMessage `json:"body"`
}

// A recordingProxy passes requests on to the API server and the executor, and keeps the
// answers.
type recordingProxy struct {
	api       http.RoundTripper
	apiURL    string
	executor  string
	recording clusterRecording
}

// recordCluster runs the commands through a proxy and writes the answers that they got.
func recordCluster(ctx context.Context, cfg *rest.Config, executorURL, binDir, dir string) error {
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		return err
	}
	p := &recordingProxy{
		api: transport, apiURL: strings.TrimRight(cfg.Host, "/"), executor: executorURL,
		recording: clusterRecording{Now: time.Now().UTC(), Commands: recordedCommands},
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: p}
	go func() { _ = server.Serve(listener) }() // until it is closed
	defer server.Close()
	address := "http://" + listener.Addr().String()
	for _, command := range recordedCommands {
		args := append(slices.Clone(command), "--server", address)
		if command[0] == "decisions" {
			args = append(args, "--url", address)
		}
		// One command after the other: their requests are not mixed. Some are refused.
		out, err := exec.CommandContext(ctx, filepath.Join(binDir, "kubectl-jobpolicy"), args...).CombinedOutput()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !strings.Contains(string(out), "forbidden") {
			return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, out)
		}
	}
	data, err := json.Marshal(p.recording)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "cluster.json"), append(data, '\n'), 0o644)
}

// ServeHTTP implements http.Handler.
func (p *recordingProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := answer{Request: requestLine(r)}
	if i := slices.IndexFunc(p.recording.Answers, func(b answer) bool { return b.Request == a.Request }); i >= 0 && isList(r) {
		a = p.recording.Answers[i]
	} else {
		if err := p.ask(r, &a); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		p.recording.Answers = append(p.recording.Answers, a)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.Code)
	_, _ = w.Write(a.Body) // the command went away
}

// requestLine tells requests apart.
func requestLine(r *http.Request) string {
	line := r.Method + " " + r.URL.RequestURI()
	if as := r.Header.Get("Impersonate-User"); as != "" {
		line += " as " + as
	}
	return line
}

// isList reports whether a request reads objects of one kind.
func isList(r *http.Request) bool {
	kind := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	return r.Method == http.MethodGet && slices.Contains([]string{"jobs", "cronjobs", "events", "decisions"}, kind)
}

// ask sends a request on.
func (p *recordingProxy) ask(r *http.Request, a *answer) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	base, transport := p.apiURL, p.api
	if strings.HasPrefix(r.URL.Path, "/debug/") {
		base, transport = p.executor, http.DefaultTransport
	}
	request, err := http.NewRequestWithContext(r.Context(), r.Method, base+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	for _, name := range []string{"Content-Type", "Impersonate-User"} {
		if value := r.Header.Get(name); value != "" {
			request.Header.Set(name, value)
		}
	}
	request.Header.Set("Accept", "application/json")
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	a.Code = response.StatusCode
	if a.Body, err = io.ReadAll(response.Body); err == nil && isList(r) {
		a.Body, err = withoutManagedFields(a.Body)
	}
	return err
}

// withoutManagedFields cuts off of a list what no command reads of its objects.
func withoutManagedFields(list []byte) ([]byte, error) {
	var object map[string]json.RawMessage
	if json.Unmarshal(list, &object) != nil || object["items"] == nil {
		return list, nil // no list of objects
	}
	var items []map[string]any
	if err := json.Unmarshal(object["items"], &items); err != nil {
		return nil, err
	}
	for _, item := range items {
		if meta, ok := item["metadata"].(map[string]any); ok {
			delete(meta, "managedFields")
		}
	}
	var err error
	if object["items"], err = json.Marshal(items); err != nil {
		return nil, err
	}
	return json.Marshal(object)
}
