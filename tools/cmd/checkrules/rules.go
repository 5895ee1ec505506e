package main

// This file has all rules of this command: edit them here. Those of golangci-lint are in .golangci.yml.

// ourPrefix begins the import path of every package of this workspace.
const ourPrefix = "jobpolicy.dev/"

// moduleRule is one row of the architecture: what a module of the workspace may depend on. A path in a row stands for
// itself and for everything below it. Which packages its source may import is a rule of .golangci.yml.
type moduleRule struct {
	// dir is the module's directory as go.work names it, without the leading "./".
	dir string
	// linked lists what its code may link in the end, through any number of imports, besides the standard library
	// and jobpolicy.dev. Nil: anything.
	linked []string
	// never lists what go.mod must not name, directly or indirectly.
	never []rejection
}

// rejection is a path that a module must not use, and what to do instead.
type rejection struct{ path, instead string }

// The libraries that rows name.
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

// moduleRules has a row for each module of the workspace.
var moduleRules = []moduleRule{
	{dir: "proto", never: []rejection{upstreamSource}},
	{
		dir:    "engine",
		linked: []string{protobufRuntime, rpcStatus, cronLibrary},
		never: []rejection{
			{"k8s.io", "the engine knows no Kubernetes type; carry the fact in the request message"},
			{"sigs.k8s.io", "the engine knows no Kubernetes type; carry the fact in the request message"},
			{grpcGo, "the engine is no server; the service maps its answers to gRPC"},
			{"go.opentelemetry.io", "put what happened into the explanation; the service turns it into spans and metrics"},
		},
	},
	{dir: "executor", never: []rejection{upstreamSource}},
	{dir: "services", never: []rejection{upstreamSource}},
	{dir: "deploy/local"},
	{dir: "test"},
}

// pureModule is the module whose code (not its tests) is checked for purity.
const pureModule = "engine"

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

// readsVersions are the packages that may compare API versions: what a manifest says decides whether the API server
// takes it.
var readsVersions = []string{"services/internal/manifest"}

// toolVersions are the dependencies whose version in the tools module must be that of the workspace, because the
// tool writes code for the library.
var toolVersions = []string{protobufRuntime}
