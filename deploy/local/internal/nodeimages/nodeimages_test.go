package nodeimages

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jobpolicy.dev/deploy/local/must"
)

const database = "perl\t\tperl-base (= 5.36.0), libperl5.36 (= 5.36.0) | libperl-old\n" +
	"perl-base\t\tlibc6 (>= 2.35), dpkg (>= 1.17.17)\n" +
	"libperl5.36\tperlapi-5.36.0\tlibc6 (>= 2.35), perl-base:any\n" +
	"libc6\t\t, libgcc-s1\n" +
	"dpkg\t\ttar\n" +
	"tar\t\t\n" +
	"needs-api\t\tperlapi-5.36.0\n"

func TestClosure(t *testing.T) {
	cases := map[string]struct {
		wanted, want []string
	}{
		"dependencies of dependencies, without those not installed and those for setting up": {
			wanted: []string{"perl"},
			want:   []string{"libc6", "libperl5.36", "perl", "perl-base"},
		},
		"a package that stands for another name": {
			wanted: []string{"needs-api"},
			want:   []string{"libc6", "libperl5.36", "needs-api", "perl-base", "perlapi-5.36.0"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parsePackages(database).closure(tc.wanted)
			must.Succeed(t, err)
			slices.Sort(got)
			must.Equal(t, "packages", tc.want, got)
		})
	}
	_, err := parsePackages(database).closure([]string{"perl", "python3"})
	if err == nil || !strings.Contains(err.Error(), "package python3 is not installed") {
		t.Errorf("a package that is not installed: got %v", err)
	}
}

// entries reads a tar archive.
func entries(t *testing.T, r io.Reader) (headers []*tar.Header, contents map[string][]byte) {
	t.Helper()
	contents = map[string][]byte{}
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if err == io.EOF {
			return headers, contents
		}
		must.Succeed(t, err)
		headers = append(headers, h)
		if contents[h.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnImageIsOneLayerWithItsNames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "image.tar")
	image := Image{
		Names: []string{"busybox:latest", "example.com/x:1"},
		Files: map[string]File{
			"/bin/a/run":  {Content: []byte("program"), Mode: 0o755},
			"/bin/a/link": {Link: "run"},
		},
		Env:        []string{"A=B"},
		Entrypoint: []string{"/bin/a/run"},
	}
	must.Succeed(t, image.WriteFile(file))
	archive, err := os.Open(file)
	must.Succeed(t, err)
	defer archive.Close()
	_, parts := entries(t, archive)

	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	must.Succeed(t, json.Unmarshal(parts["manifest.json"], &manifest))
	must.Equal(t, "names", image.Names, manifest[0].RepoTags)
	var config struct {
		Config struct{ Env, Entrypoint []string }
		Rootfs struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	must.Succeed(t, json.Unmarshal(parts[manifest[0].Config], &config))
	layer := parts[manifest[0].Layers[0]]
	sum := sha256.Sum256(layer)
	if want := []string{"sha256:" + hex.EncodeToString(sum[:])}; !slices.Equal(config.Rootfs.DiffIDs, want) {
		t.Errorf("the layer is %v, want %v", config.Rootfs.DiffIDs, want)
	}
	if want := []string{searchPath, "A=B"}; !slices.Equal(config.Config.Env, want) || !slices.Equal(config.Config.Entrypoint, image.Entrypoint) {
		t.Errorf("the configuration is %v", config.Config)
	}

	headers, _ := entries(t, strings.NewReader(string(layer)))
	var got []string
	for _, h := range headers {
		got = append(got, h.FileInfo().Mode().String()+" "+h.Name+h.Linkname)
	}
	want := []string{
		"drwxr-xr-x bin/", "drwxr-xr-x bin/a/", "Lrwxrwxrwx bin/a/linkrun", "-rwxr-xr-x bin/a/run",
		"drwxr-xr-x etc/", "-rw-r--r-- etc/group", "-rw-r--r-- etc/passwd", "drwx------ root/", "dtrwxrwxrwx tmp/",
	}
	must.Equal(t, "files", want, got)
}
