/* A signal handler that counts the signals, and those that found the stack pointer somewhere else than in the stack of
 * their thread: the kernel writes a frame of up to 11 kB below that place, whatever is there. Needs the GNU C library,
 * which puts the descriptor of a thread at the upper end of its stack. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/time.h>

enum { MOST_BYTES = 1 << 26 };

static long n_delivered, n_astray;
static pthread_t first_thread;
static uintptr_t top_of_first, stack_bytes;

static void count(int number) {
  const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
  const uintptr_t top = pthread_equal(pthread_self(), first_thread) ? top_of_first : (uintptr_t)pthread_self();
  (void)number;
  __atomic_add_fetch(&n_delivered, 1, __ATOMIC_RELAXED);
  if (here > top || top - here > stack_bytes) __atomic_add_fetch(&n_astray, 1, __ATOMIC_RELAXED);
}

/* Call it on the first thread. `timer` sends `number` every `period_us` of its time from then on; 0 ends that. */
int send_signals(int number, int timer, long period_us) {
  pthread_attr_t attributes;
  struct rlimit limit;
  void *bottom;
  size_t bytes;
  if (pthread_getattr_np(pthread_self(), &attributes) || pthread_attr_getstack(&attributes, &bottom, &bytes)) return -1;
  pthread_attr_destroy(&attributes);
  if (getrlimit(RLIMIT_STACK, &limit)) return -1;
  first_thread = pthread_self();
  top_of_first = (uintptr_t)bottom + bytes;
  stack_bytes = limit.rlim_cur < MOST_BYTES ? limit.rlim_cur : MOST_BYTES;

  struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
  const struct timeval period = {period_us / 1000000, period_us % 1000000};
  const struct itimerval times = {period, period};
  return sigaction(number, &action, 0) || setitimer(timer, &times, 0);
}

long delivered(void) { return __atomic_load_n(&n_delivered, __ATOMIC_RELAXED); }
long astray(void) { return __atomic_load_n(&n_astray, __ATOMIC_RELAXED); }
