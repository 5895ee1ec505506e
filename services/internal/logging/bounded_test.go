package logging_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobpolicy.dev/services/internal/logging"
	"jobpolicy.dev/services/internal/testenv"
)

func TestLinesThatStrangersCauseAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out testenv.Log
		log := logging.Bounded(out.Logger())
		for range 100 {
			log.With("from", "x").Warn("refused")
		}
		time.Sleep(11 * time.Second)
		log.Warn("refused again")
		text := out.String()
		if out.Count("msg=refused") != 1 || !strings.Contains(text, "from=x notLogged=0\n") || !strings.Contains(text, `msg="refused again" notLogged=99`) {
			t.Errorf("want the first line, and one later that counts those left out:\n%s", text)
		}
	})
}

func TestThePeriodMayBeLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out testenv.Log
		log := logging.BoundedEvery(time.Minute, out.Logger())
		for range 121 {
			log.Warn("away")
			time.Sleep(time.Second)
		}
		if n := out.Count("msg=away"); n != 3 {
			t.Errorf("%d lines in two minutes, want 3:\n%s", n, out.String())
		}
	})
}
