package release

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"jobpolicy.dev/tools/internal/checkout"
	"jobpolicy.dev/tools/internal/ociimage"
)

// instructions writes PUSH.md, and tells the log: what a person does with the release.
func (r Release) instructions(ctx context.Context, clone string) error {
	commit, err := checkout.Git(ctx, clone, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "# Publish jobpolicy %s\n\n", r.Version)
	fmt.Fprintf(&text, "Nothing has been pushed. The commit is %s, on the branch %s of this repository.\n", commit, r.Branch())
	fmt.Fprint(&text, "Run these in the repository, in this order: what is pushed later names what was pushed before.\n\n")
	fmt.Fprint(&text, "The images (crane) and the chart (helm):\n\n```\n")
	for _, p := range ociimage.Programs() {
		fmt.Fprintf(&text, "crane push %s %s/%s:%s\n", filepath.Join(r.Out, "images", p.Name), r.Repository, p.Name, r.Version)
	}
	fmt.Fprintf(&text, "helm push %s oci://%s/charts\n", filepath.Join(r.Out, "jobpolicy-"+strings.TrimPrefix(r.Version, "v")+".tgz"), r.Repository)
	fmt.Fprint(&text, "```\n\nThe tags, one for the repository and one for each Go module:\n\n```\n")
	fmt.Fprintf(&text, "for tag in %s; do git tag --annotate --message \"jobpolicy %s\" \"$tag\" %s; done\n", strings.Join(r.tags(), " "), r.Version, commit)
	fmt.Fprintf(&text, "git push origin %s\n", strings.Join(r.tags(), " "))
	fmt.Fprint(&text, "```\n\nThe go command finds the modules if https://jobpolicy.dev answers ?go-get=1 with a go-import tag that names the\n")
	fmt.Fprintf(&text, "repository. Afterwards `GOPROXY=direct go list -m jobpolicy.dev/proto@%s` must print the version.\n\n", r.Version)
	fmt.Fprint(&text, "NOTES.md is the text of the release; attach to it manifests/, the chart, the images' *.spdx.json and SHA256SUMS.\n")
	fmt.Fprintf(&text, "\nPublish plugin/*.tar.gz below %s/%s/, where plugin/jobpolicy.yaml looks for them. That file is what\n", strings.TrimSuffix(r.Downloads, "/"), r.Version)
	fmt.Fprint(&text, "`kubectl krew install --manifest=jobpolicy.yaml` takes, and what a pull request to krew-index holds.\n")
	fmt.Fprintf(&text, "\nplayground/%s holds static files: publish it unpacked, or attach it to the release.\n", playgroundArchive)
	fmt.Fprint(r.Log, "\n"+text.String()+"\n")
	return os.WriteFile(filepath.Join(r.Out, "PUSH.md"), []byte(text.String()), 0o644)
}
