package spdx

import (
	"bytes"
	"encoding/json"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
)

// thisProgram is the running test: a Go program like any other.
func thisProgram(t *testing.T) Program {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return Program{
		Name: "a-program", Binary: binary, Path: "/a-program", Version: "v1.2.3",
		Ours: "jobpolicy.dev/", License: "Apache-2.0",
		Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Tool: "tests-1",
	}
}

func TestDocumentIsValidSPDX(t *testing.T) {
	doc, err := thisProgram(t).Document()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	read, err := spdxjson.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("SPDX's own library cannot read it: %v", err)
	}
	if err := spdxlib.ValidateDocument(read); err != nil {
		t.Errorf("SPDX's own library: %v", err)
	}
	if read.SPDXVersion != "SPDX-2.3" || len(read.Packages) != len(doc.Packages) || len(read.Files) != 1 {
		t.Errorf("read back: %s, %d packages, %d files; want SPDX-2.3, %d, 1",
			read.SPDXVersion, len(read.Packages), len(read.Files), len(doc.Packages))
	}
}

func TestDocumentListsWhatIsLinked(t *testing.T) {
	doc, err := thisProgram(t).Document()
	if err != nil {
		t.Fatal(err)
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("the test has no build information")
	}
	want := []string{"jobpolicy.dev/tools@v1.2.3", "stdlib@" + strings.TrimPrefix(info.GoVersion, "go")}
	for _, dep := range info.Deps {
		want = append(want, dep.Path+"@"+dep.Version)
	}
	var got []string
	for _, pkg := range doc.Packages {
		got = append(got, pkg.PackageName+"@"+pkg.PackageVersion)
		if locator := pkg.PackageExternalReferences[0].Locator; locator != "pkg:golang/"+pkg.PackageName+"@"+pkg.PackageVersion {
			t.Errorf("package URL of %s is %s", pkg.PackageName, locator)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
}

func TestModuleVersionIsThatOfTheBuild(t *testing.T) {
	p := Program{Version: "v1.2.3", Ours: "jobpolicy.dev/", License: "Apache-2.0"}
	cases := map[string]struct {
		of      debug.Module
		want    string
		license string
	}{
		"a dependency":                     {debug.Module{Path: "example.com/a", Version: "v0.1.0"}, "example.com/a@v0.1.0", noAssertion},
		"a dependency that was replaced":   {debug.Module{Path: "example.com/a", Version: "v0.1.0", Replace: &debug.Module{Path: "example.com/b", Version: "v0.2.0"}}, "example.com/b@v0.2.0", noAssertion},
		"ours, from the folder beside":     {debug.Module{Path: "jobpolicy.dev/engine", Version: "v0.0.0", Replace: &debug.Module{Path: "../engine"}}, "jobpolicy.dev/engine@v1.2.3", "Apache-2.0"},
		"ours, built where it stands":      {debug.Module{Path: "jobpolicy.dev/services", Version: "(devel)"}, "jobpolicy.dev/services@v1.2.3", "Apache-2.0"},
		"ours, as it was released earlier": {debug.Module{Path: "jobpolicy.dev/proto", Version: "v1.1.0"}, "jobpolicy.dev/proto@v1.1.0", "Apache-2.0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pkg := p.modulePackage(&tc.of)
			if got := pkg.PackageName + "@" + pkg.PackageVersion; got != tc.want || pkg.PackageLicenseDeclared != tc.license {
				t.Errorf("package %s, license %s; want %s, %s", got, pkg.PackageLicenseDeclared, tc.want, tc.license)
			}
		})
	}
}
