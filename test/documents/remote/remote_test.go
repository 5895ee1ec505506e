package remote

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/descriptorpb"

	"jobpolicy.dev/deploy/local/freeport"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/test/documents/guide"
)

// address is the engine's on the page, and traceID the trace of the engine's callers.
const (
	address = "localhost:8443"
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
)

// needs are the programs that the commands below a heading take.
var needs = map[string][]string{
	"An engine and its certificates": {"openssl"},
	"Go":                             {},
	"Python":                         {"buf", "protoc", "grpc_python_plugin", "/usr/bin/python3"},
	"Node":                           {"buf", "node"},
	"Other languages":                {"protoc"},
	"Another engine":                 {},
}

// watchesHealth are the languages whose clients, as the page says, watch the engine's
// health.
var watchesHealth = map[string]bool{"Go": true, "Python": true}

// Every command and program of the page works, each caller's trace reaches the
// engine, and the clients of which the page says so watch the engine's health.
func TestPage(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the engine and generates clients")
	}
	p := newPage(t)
	steps, err := guide.Read(p.file)
	must.Succeed(t, err)
	ran := map[string]bool{}
	for _, step := range steps {
		programs, known := needs[step.Heading]
		if !known {
			t.Fatalf("docs/remote.md:%d: commands below the heading %q need a row in the test", step.Line, step.Heading)
		}
		if step.Heading == "Go" && p.engine == nil {
			p.startEngine(t)
		}
		t.Run(step.Heading, func(t *testing.T) {
			if missing := p.missing(step.Heading, programs); missing != "" {
				t.Skipf("NOT RUN: %s is missing (make callers installs it)", missing)
			}
			step.Command = strings.ReplaceAll(step.Command, address, p.address)
			before := p.seen(t)
			if _, err := p.shell.Run(t.Context(), step); err != nil {
				t.Fatalf("docs/remote.md:%d: %v", step.Line, err)
			}
			ran[step.Heading] = true
			if step.Heading == "Other languages" {
				checkPublished(t, filepath.Join(p.dir, "jobpolicy.binpb"))
			}
			if strings.Contains(step.Command, "ask") && strings.Contains(step.Command, p.address) {
				p.checkCaller(t, before, watchesHealth[step.Heading])
			}
		})
	}
	if !ran["An engine and its certificates"] || !ran["Go"] {
		t.Error("the page was not run")
	}
}

// What protoc makes of the files below third_party is what others have published.
func checkPublished(t *testing.T, file string) {
	t.Helper()
	var set descriptorpb.FileDescriptorSet
	must.Succeed(t, proto.Unmarshal(read(t, file), &set))
	files, err := protodesc.NewFiles(&set)
	must.Succeed(t, err)
	for _, want := range []protoreflect.FileDescriptor{status.File_google_rpc_status_proto, errdetails.File_google_rpc_error_details_proto} {
		got, err := files.FindFileByPath(want.Path())
		must.Succeed(t, err)
		if diff := cmp.Diff(protodesc.ToFileDescriptorProto(want), protodesc.ToFileDescriptorProto(got), protocmp.Transform()); diff != "" {
			t.Errorf("%s (-published +here):\n%s", want.Path(), diff)
		}
	}
}

// What the page installs for Node and Python is what the test runs with.
func TestPageInstallsWhatIsTested(t *testing.T) {
	var pinned struct{ Dependencies map[string]string }
	data := read(t, "../../../tools/callers/package.json")
	must.Succeed(t, json.Unmarshal(data, &pinned))
	line := regexp.MustCompile(`(?m)^npm install (.*)$`).FindSubmatch(read(t, "../../../docs/remote.md"))
	if line == nil {
		t.Fatal("docs/remote.md has no line that begins with npm install")
	}
	packages := strings.Fields(string(line[1]))
	for _, name := range packages {
		if pinned.Dependencies[name] == "" {
			t.Errorf("docs/remote.md installs %s, tools/callers/package.json does not", name)
		}
	}
	if len(packages) != len(pinned.Dependencies) {
		t.Errorf("docs/remote.md installs %v, tools/callers/package.json %v", packages, pinned.Dependencies)
	}
	line = regexp.MustCompile(`(?m)^apt-get install (.*)$`).FindSubmatch(read(t, "../../../docs/remote.md"))
	if line == nil {
		t.Fatal("docs/remote.md has no line that begins with apt-get install")
	}
	var script []string
	for _, added := range regexp.MustCompile(`packages\+=\((.*?)\)`).FindAllSubmatch(read(t, "../../../tools/callers/install.sh"), -1) {
		script = append(script, strings.Fields(string(added[1]))...)
	}
	less := func(a, b string) bool { return a < b }
	// Who has Node has npm.
	if diff := cmp.Diff(append(strings.Fields(string(line[1])), "npm"), script, cmpopts.SortSlices(less)); diff != "" {
		t.Errorf("Debian's packages (-docs/remote.md and npm +tools/callers/install.sh):\n%s", diff)
	}
}

// The service config of the page is the one that jobpolicyv1grpc.Dial uses.
func TestPageHasTheServiceConfigOfDial(t *testing.T) {
	block := regexp.MustCompile("(?s)`service-config\\.json`:\n\n```json\n(.*?)```").FindSubmatch(read(t, "../../../docs/remote.md"))
	if block == nil {
		t.Fatal("docs/remote.md has no service-config.json")
	}
	var page, dial any
	for text, to := range map[string]*any{string(block[1]): &page, jobpolicyv1grpc.ServiceConfig: &dial} {
		must.Succeed(t, json.Unmarshal([]byte(text), to))
	}
	if diff := cmp.Diff(dial, page); diff != "" {
		t.Errorf("service config (-Dial +page):\n%s", diff)
	}
}

// page is docs/remote.md and the folder that it is followed in.
type page struct {
	file, root, dir string
	shell           guide.Shell
	address         string
	metrics         string
	engine          *exec.Cmd
	output          string
}

func newPage(t *testing.T) *page {
	root, err := filepath.Abs("../../..")
	must.Succeed(t, err)
	p := &page{file: filepath.Join(root, "docs/remote.md"), root: root, dir: t.TempDir(), address: freeAddress(t), metrics: freeAddress(t)}
	p.output = filepath.Join(p.dir, "engine.log")
	path := os.Getenv("PATH") + ":" + filepath.Join(root, ".bin")
	t.Setenv("PATH", path)
	p.shell = guide.Shell{Dir: p.dir, Env: append(os.Environ(), "GOFLAGS=")}
	link(t, root, filepath.Join(p.dir, "jobpolicy"))
	if modules := filepath.Join(root, ".bin/callers/node_modules"); exists(modules) {
		link(t, modules, filepath.Join(p.dir, "node_modules"))
	}
	for _, file := range regexp.MustCompile("(?s)\n`([^`\n]+)`:\n\n```[a-z]+\n(.*?)```\n").FindAllSubmatch(read(t, p.file), -1) {
		must.Succeed(t, os.WriteFile(filepath.Join(p.dir, string(file[1])), file[2], 0o644))
	}
	return p
}

func freeAddress(t *testing.T) string {
	t.Helper()
	port := freeport.PortFor(t)
	return net.JoinHostPort("localhost", port)
}

// missing names what the commands below a heading need and is not installed.
func (p *page) missing(heading string, programs []string) string {
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			return program
		}
	}
	if heading == "Node" && !exists(filepath.Join(p.dir, "node_modules")) {
		return "npm's packages in .bin/callers"
	}
	if heading == "Other languages" && !exists("/usr/include/google/protobuf/timestamp.proto") && !exists("/usr/local/include/google/protobuf/timestamp.proto") {
		return "the files that come with protoc"
	}
	if heading == "Python" && exec.Command("/usr/bin/python3", "-c", "import grpc, google.protobuf").Run() != nil {
		return "grpcio or protobuf for /usr/bin/python3"
	}
	return ""
}

// startEngine runs the page's command for the engine until the end of the test, on
// another port, with a log of every call and with metrics.
func (p *page) startEngine(t *testing.T) {
	block := regexp.MustCompile("(?s)```bash\n(\\./jobpolicy-engine .*?)```").FindSubmatch(read(t, p.file))
	if block == nil {
		t.Fatal("docs/remote.md has no command that starts the engine")
	}
	command := strings.ReplaceAll(strings.TrimSpace(string(block[1])), address, p.address)
	log, err := os.Create(p.output)
	must.Succeed(t, err)
	p.engine = exec.CommandContext(t.Context(), "bash", "-c", "exec "+command+" --log-level=debug --http-address="+p.metrics)
	p.engine.Dir, p.engine.Stdout, p.engine.Stderr = p.dir, log, log
	must.Succeed(t, p.engine.Start())
	t.Cleanup(func() {
		_ = p.engine.Process.Kill()
		_ = p.engine.Wait()
		_ = log.Close()
	})
	for deadline := time.Now().Add(time.Minute); !bytes.Contains(p.log(t), []byte("engine serving")); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the engine does not serve:\n%s", p.log(t))
		}
	}
}

func (p *page) log(t *testing.T) []byte { return read(t, p.output) }

// seen is what the engine has seen of callers.
type seen struct {
	// traces is how many lines of its log are about the callers' trace.
	traces int
	// watches is how many callers have watched its health, and are gone.
	watches int
}

var endedWatches = regexp.MustCompile(`(?m)^grpc_server_handled_total\{.*grpc_method="Watch".*\} (\d+)$`)

func (p *page) seen(t *testing.T) (s seen) {
	t.Helper()
	if p.engine == nil {
		return s
	}
	s.traces = bytes.Count(p.log(t), []byte("trace_id="+traceID))
	response, err := http.Get("http://" + p.metrics + "/metrics")
	must.Succeed(t, err)
	defer response.Body.Close()
	metrics, err := io.ReadAll(response.Body)
	must.Succeed(t, err)
	for _, line := range endedWatches.FindAllSubmatch(metrics, -1) {
		n, err := strconv.Atoi(string(line[1]))
		must.Succeed(t, err)
		s.watches += n
	}
	return s
}

// checkCaller checks what the engine has seen of a caller that has ended.
func (p *page) checkCaller(t *testing.T, before seen, watchesHealth bool) {
	t.Helper()
	if n := p.seen(t).traces - before.traces; n < 2 {
		t.Errorf("the engine saw %d calls in the trace of the caller, want 2:\n%s", n, p.log(t))
	}
	for deadline := time.Now().Add(time.Minute); watchesHealth && p.seen(t).watches == before.watches; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the caller has not watched the engine's health")
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func link(t *testing.T, from, to string) {
	t.Helper()
	must.Succeed(t, os.Symlink(from, to))
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	must.Succeed(t, err)
	return data
}
