// Package supervise starts child processes that cannot outlive the program
// that started them, and remembers how each of them ended.
//
// Three things keep a machine clean:
//
//   - On Linux a child asks the kernel for SIGKILL at the death of its parent,
//     so a supervisor that is itself killed leaves nothing behind.
//   - A child is the leader of its own process group: a Ctrl-C at the terminal
//     reaches the supervisor alone, which then stops its children in order.
//   - Output goes to a file, never through a pipe, so a child neither blocks on
//     its supervisor nor dies of a broken pipe.
package supervise
