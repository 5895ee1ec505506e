package main

// This file is the whole rule book: edit the rules here, and nowhere else.

// ourPrefix begins the import path of every package of this workspace.
const ourPrefix = "jobpolicy.dev/"

// moduleRule is one row of the architecture: what a module of the workspace may lean on. A path in a row stands for
// itself and for everything below it.
type moduleRule struct {
	// dir is the module's directory as go.work names it, without the leading "./".
	dir string
	// ours lists the directories of the workspace modules that it may import, in code and in tests.
	ours []string
	// direct lists what its code may import besides the standard library and ours. Nil: anything. Tests are free.
	direct []string
	// linked lists what its code may link in the end, through any number of imports, besides the standard library
	// and jobpolicy.dev. Nil: anything.
	linked []string
	// never lists what code, tests and go.mod (indirect requirements too) must not name.
	never []rejection
}

// rejection is a path that a module must not use, and what to do instead.
type rejection struct{ path, instead string }

// The libraries that have a place in more than one row.
const (
	protobufRuntime = "google.golang.org/protobuf"
	rpcStatus       = "google.golang.org/genproto/googleapis/rpc"
	grpcGo          = "google.golang.org/grpc"
	cronLibrary     = "github.com/netresearch/go-cron"
)

var upstreamSource = rejection{
	"k8s.io/kubernetes",
	"only deploy/local and test may use the upstream source; move the code there",
}

// moduleRules is the architecture. Arrows run one way: services → executor, engine, proto; executor → proto;
// engine → proto; only test imports deploy/local, and nothing imports test.
var moduleRules = []moduleRule{
	{
		dir:    "proto",
		direct: []string{protobufRuntime, rpcStatus, grpcGo},
		never:  []rejection{upstreamSource},
	},
	{
		dir:    "engine",
		ours:   []string{"proto"},
		direct: []string{protobufRuntime, cronLibrary},
		linked: []string{protobufRuntime, rpcStatus, cronLibrary},
		never: []rejection{
			{"k8s.io", "the engine knows no Kubernetes type; carry the fact in the request message"},
			{"sigs.k8s.io", "the engine knows no Kubernetes type; carry the fact in the request message"},
			{grpcGo, "the engine is no server; the service maps its answers to gRPC"},
			{"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc", "use the messages only; stubs belong to services and executor"},
			{"go.opentelemetry.io", "put what happened into the explanation; the service turns it into spans and metrics"},
		},
	},
	{
		dir:   "executor",
		ours:  []string{"proto"},
		never: []rejection{upstreamSource},
	},
	{
		dir:   "services",
		ours:  []string{"executor", "engine", "proto"},
		never: []rejection{upstreamSource},
	},
	{
		dir:  "deploy/local",
		ours: []string{"services", "executor", "engine", "proto"},
	},
	{
		dir:  "test",
		ours: []string{"deploy/local", "services", "executor", "engine", "proto"},
	},
}

// pureModule is the module whose code (not its tests) is held to the purity rules below.
const pureModule = "engine"

// impureImports are the packages that a pure module must not import: each row a path, everything below it, the rule's
// name and what to do instead.
var impureImports = []struct{ path, rule, instead string }{
	{"math/rand", "randomness", "derive the value from the request"},
	{"crypto/rand", "randomness", "derive the value from the request"},
	{"hash/maphash", "randomness", "its seed differs in each process; use a fixed hash such as hash/fnv"},
	{"os", "io", "carry the fact in the request"},
	{"io/fs", "io", "carry the fact in the request"},
	{"io/ioutil", "io", "carry the fact in the request"},
	{"net", "io", "carry the fact in the request"},
	{"database", "io", "carry the fact in the request"},
	{"syscall", "io", "carry the fact in the request"},
	{"plugin", "io", "write the policy as a rule in the ordered list"},
	{"log", "logging", "put what happened into the explanation"},
	{"expvar", "logging", "put what happened into the explanation"},
	{"flag", "process-state", "carry the setting in the request"},
	{"runtime", "process-state", "decide from the request alone"},
	{"unsafe", "process-state", "use safe Go"},
	{"sync", "concurrency", "take values and return values; the engine shares nothing"},
	{"context", "concurrency", "a decision neither waits nor is cancelled; leave the context to the caller"},
	{"google.golang.org/protobuf/encoding/protojson", "unstable-text", "its spacing varies between builds; print fields yourself"},
	{"google.golang.org/protobuf/encoding/prototext", "unstable-text", "its spacing varies between builds; print fields yourself"},
}

// impureNames are the functions, methods and variables that a pure module must not use, by package, or by package and
// type.
var impureNames = []struct {
	in      string
	names   []string
	rule    string
	instead string
}{
	{"time", []string{"Now", "Since", "Until"}, "clock", "use the request's now"},
	{
		"time",
		[]string{"Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
		"clock", "answer with a requeue time instead of waiting",
	},
	{"time", []string{"Local"}, "clock", "the host's time zone is not in the request; use time.UTC"},
	{"time.Time", []string{"Local"}, "clock", "the host's time zone is not in the request; use UTC()"},
	{"time", []string{"LoadLocation"}, "io", "it reads an environment variable and the host's files; use engine/zone"},
	{"fmt", []string{"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"}, "io", "return the text as a value"},
	{"", []string{"print", "println"}, "io", "return the text as a value"},
}

// orderlessCalls walk a map in random order, as a range statement over it does.
var orderlessCalls = []struct {
	in    string
	names []string
}{
	{"maps", []string{"All", "Keys", "Values"}},
	{"google.golang.org/protobuf/reflect/protoreflect.Message", []string{"Range"}},
	{"google.golang.org/protobuf/reflect/protoreflect.Map", []string{"Range"}},
}

// sortingCalls make an orderless call that is their direct argument harmless.
var sortingCalls = []string{"slices.Sorted", "slices.SortedFunc", "slices.SortedStableFunc"}

// orderWaiver on the line of a walk over a map, or on the line above, followed by the reason, allows that walk.
const orderWaiver = "// order does not matter: "

// toolVersions are the dependencies whose version in the tools module must be that of the workspace, because the
// tool writes code for the library.
var toolVersions = []string{protobufRuntime}
