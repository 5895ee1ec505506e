package browser

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

func show(ctx context.Context, t testing.TB, html string) {
	t.Helper()
	Do(ctx, t, chromedp.Navigate("data:text/html;charset=utf-8,"+html))
}

func TestPage(t *testing.T) {
	ctx := New(t)
	show(ctx, t, `<style>@media (prefers-color-scheme:dark){h1{color:red}}</style><h1>a page</h1>`)
	if got := Text(ctx, t, "h1"); got != "a page" {
		t.Errorf("text %q, want %q", got, "a page")
	}
	Dark(ctx, t, true)
	Await(ctx, t, `getComputedStyle(document.querySelector('h1')).color === 'rgb(255, 0, 0)'`)
	Size(ctx, t, 600, 800)
	if got := Eval[int](ctx, t, `innerWidth`); got != 600 {
		t.Errorf("the page is %d pixels wide, want 600", got)
	}
}

// What a sound page does not do is seen, so New fails its test.
func TestUnsoundPages(t *testing.T) {
	cases := map[string]struct{ html, want string }{
		"an exception":   {`<script>throw new Error('oh no')</script>`, "throws: "},
		"a dialog":       {`<script>alert('boo')</script>`, "opens a dialog: boo"},
		"a missing file": {`<img src="http://127.0.0.1:1/x.png">`, "logs an error: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := &problems{}
			ctx := start(t, seen)
			show(ctx, t, tc.html)
			found := func() bool { return strings.Contains(strings.Join(seen.list(), "\n"), tc.want) }
			for ctx.Err() == nil && !found() {
				Eval[int](ctx, t, `1`) // what the page did before this comes before its answer
			}
			if !found() {
				t.Errorf("seen: %q, want %q", seen.list(), tc.want)
			}
		})
	}
}
