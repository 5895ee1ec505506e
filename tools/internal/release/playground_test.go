package release

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"jobpolicy.dev/tools/internal/ociimage"
)

// The archive of the playground holds its page, its engine and the manifests.
func TestPlayground(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the engine for WebAssembly: a minute the first time")
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	r := Release{Version: "v1.2.3", Out: t.TempDir()}
	if err := r.playground(t.Context(), ociimage.Source{Dir: root, Version: r.Version, Time: time.Unix(1_700_000_000, 0)}); err != nil {
		t.Fatal(err)
	}
	packed, err := os.ReadFile(filepath.Join(r.Out, "playground", playgroundArchive))
	if err != nil {
		t.Fatal(err)
	}
	files := unpack(t, packed)
	checkLicenses(t, files, "jobpolicy-playground", "github.com/netresearch/go-cron@v", "google.golang.org/protobuf@v")
	for _, name := range []string{"index.html", "engine.js", "manifests.js", "wasm_exec.js"} {
		if len(files["jobpolicy-playground/"+name]) == 0 {
			t.Errorf("the archive has no %s; files: %d", name, len(files))
		}
	}
}
