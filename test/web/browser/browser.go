// Package browser opens pages in a real headless Chromium, for tests of what a person
// sees.
//
// A test that needs Chromium is skipped where it is not installed; make browser
// installs it. A page that throws an error, logs one, or opens a dialog fails its
// test. So a test of harmful input needs only to show it.
package browser

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// timeout is how long one test may use its page. No test that passes waits for it.
const timeout = 5 * time.Minute

// names are those of Chromium's program in Debian and elsewhere.
var names = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// New starts Chromium with one empty page, and returns the page's context, for
// chromedp. Both end with the test.
func New(t testing.TB) context.Context {
	t.Helper()
	seen := &problems{}
	t.Cleanup(func() {
		for _, p := range seen.list() {
			t.Errorf("the page %s", p)
		}
	})
	return start(t, seen)
}

func start(t testing.TB, seen *problems) context.Context {
	t.Helper()
	options := append([]chromedp.ExecAllocatorOption(nil), chromedp.DefaultExecAllocatorOptions[:]...)
	// Containers have a small /dev/shm.
	options = append(options, chromedp.ExecPath(program(t)), chromedp.Flag("disable-dev-shm-usage", true))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses root otherwise
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	Do(ctx, t, chromedp.EmulateViewport(1280, 900))
	if err := chromedp.Listen(ctx, func(event any) { seen.record(ctx, event) }); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// program is the path of Chromium. Without one, the test is skipped.
func program(t testing.TB) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("NOT RUN: Chromium is missing (make browser)")
	return ""
}

// problems are what the page did that a sound page does not.
type problems struct {
	mu    sync.Mutex
	found []string
}

func (p *problems) record(ctx context.Context, event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.add("throws: " + (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			p.add("logs an error: " + e.Entry.Text + " (" + e.Entry.URL + ")")
		}
	case *page.EventJavascriptDialogOpening:
		p.add("opens a dialog: " + e.Message)
		go func() { // the page stands still until the dialog is closed
			_, _ = chromedp.Call(ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
		}()
	}
}

func (p *problems) add(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found = append(p.found, text)
}

func (p *problems) list() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.found)
}

// Do takes steps on the page, each of which must succeed.
func Do(ctx context.Context, t testing.TB, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// Eval is the value of a JavaScript expression. A promise is awaited.
func Eval[T any](ctx context.Context, t testing.TB, expression string) T {
	t.Helper()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// Await waits until a JavaScript expression is true.
func Await(ctx context.Context, t testing.TB, expression string) {
	t.Helper()
	wait := chromedp.Poll[bool]("!!("+expression+")", chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(timeout))
	if _, err := chromedp.Run(ctx, wait); err != nil {
		t.Fatalf("waiting for %s: %v", expression, err)
	}
}

// Text is what a person can read in the first element that a CSS selector finds.
func Text(ctx context.Context, t testing.TB, selector string) string {
	t.Helper()
	text, err := chromedp.Run(ctx, chromedp.Text(chromedp.CSS(selector)))
	if err != nil {
		t.Fatalf("%s: %v", selector, err)
	}
	return strings.TrimSpace(text)
}

// Dark shows the page as to a person who prefers dark colours, or as to one who
// prefers light ones.
func Dark(ctx context.Context, t testing.TB, on bool) {
	t.Helper()
	scheme := "light"
	if on {
		scheme = "dark"
	}
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, media); err != nil {
		t.Fatal(err)
	}
}

// Size sets the size of the page, in pixels. At first it is 1280 by 900.
func Size(ctx context.Context, t testing.TB, width, height int64) {
	t.Helper()
	Do(ctx, t, chromedp.EmulateViewport(width, height))
}

// Screenshot writes a picture of the whole page to bin/screenshots/NAME.png, which
// git ignores.
func Screenshot(ctx context.Context, t testing.TB, name string) {
	t.Helper()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder(), name+".png")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, png, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("screenshot %s", file)
}

// folder is where screenshots are kept: beside the programs that make builds.
func folder() string {
	if bin := os.Getenv("JOBPOLICY_BIN_DIR"); bin != "" {
		return filepath.Join(bin, "screenshots")
	}
	return filepath.Join("..", "..", "..", "bin", "screenshots")
}
