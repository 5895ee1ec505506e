# For scenarios of Kueue without JobSet and Trainer.
. "$TESTDATA/kueue.sh"
