package licenses

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// repository unpacks testdata/repository.txtar, and changes a file of it; no data: removes it.
func repository(t *testing.T, name, data string) string {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/repository.txtar")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, f := range append(archive.Files, txtar.File{Name: name, Data: []byte(data)}) {
		path := filepath.Join(root, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if data == "" {
		if err := os.Remove(filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func of(t *testing.T, root string) ([]Text, error) {
	return Of(t.Context(), root, "services", []string{"GOWORK=off", "GOFLAGS=-mod=mod", "GOOS=linux", "GOARCH=amd64"}, "./cmd/program")
}

func TestTextsOfWhatIsLinked(t *testing.T) {
	texts, err := of(t, repository(t, "unused", "x"))
	if err != nil {
		t.Fatal(err)
	}
	got, standard := map[string]string{}, 0
	for _, text := range texts {
		if strings.HasPrefix(text.Name, "stdlib@") {
			standard++
			continue
		}
		got[text.Name] = strings.TrimSpace(string(text.Data))
	}
	want := map[string]string{
		"jobpolicy.dev/LICENSE":                               "ours",
		"example.com/plain@v1.0.0/Licence.md":                 "plain",
		"example.com/plain@v1.0.0/NOTICE.txt":                 "plain's notice",
		"example.com/holds@v1.2.0/COPYING":                    "holds",
		"example.com/holds@v1.2.0/third_party/copied/LICENSE": "copied",
		"example.com/holds@v1.2.0/third_party/copied/PATENTS": "copied's patents",
	}
	if diff := cmp.Diff(want, got); diff != "" || standard == 0 {
		t.Errorf("%d texts of the standard library; others (-want +got):\n%s", standard, diff)
	}
}

func TestAModuleWithoutALicenseIsAnError(t *testing.T) {
	for name, without := range map[string]struct{ file, want string }{
		"none":                   {"holds/COPYING", "module example.com/holds has no license text for package example.com/holds"},
		"nothing but a notice":   {"plain/Licence.md", "module example.com/plain has no license text for package example.com/plain"},
		"none of the repository": {"LICENSE", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := of(t, repository(t, without.file, "")); err == nil || !strings.Contains(err.Error(), without.want) {
				t.Errorf("error %v, want %q", err, without.want)
			}
		})
	}
}
