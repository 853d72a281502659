"""
The arena of the wrong-kill part: process 1 of a pid namespace of its own. Every process in it writes down each signal it gets
and process 1 reaps them, so that SIGKILL is seen too. Orders come as JSON lines on stdin, answers go out as JSON lines.
"""
import ctypes, gc, json, os, select, signal, sys, time

EXEC_SPEC = 'ARENA_SPEC'
SEEN = [s for s in range(1, 32) if s not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD)]
CLONE_NEWPID, PR_SET_DUMPABLE, PR_SET_NAME = 0x20000000, 4, 15
LIBC = ctypes.CDLL(None)
# Another program, which writes down the usual signals as well.
PERL = r'''open L, '>&=', $ARGV[0]; my ($pid, $start) = @ARGV[1, 2];
for my $s ([HUP => 1], [INT => 2], [QUIT => 3], [USR1 => 10], [USR2 => 12], [TERM => 15]) {
  $SIG{$s->[0]} = sub { syswrite L, "S $pid $start $s->[1]\n"; exit 0 if $s->[1] == 15 } }
syswrite L, "D $pid $start exec\n"; sleep 1 while 1'''


def start_of(pid):
    with open(f'/proc/{pid}/stat') as f:
        return int(f.read().rpartition(')')[2].split()[19])


class Child:
    """One process: it holds some memory, writes down its signals and does what it is told over a pipe."""

    def __init__(self, spec, log, orders):
        self.spec, self.log, self.orders = spec, log, orders
        # Read from /proc, so that it is the number outside of a nested namespace.
        self.pid = int(os.readlink('/proc/self'))
        self.start = start_of('self')

    def say(self, *words):
        os.write(self.log, (' '.join(map(str, words)) + '\n').encode())

    def run(self):
        with open('/proc/self/comm', 'wb') as f:
            f.write(self.spec['name'].encode('latin1')[:15])
        if 'argv' in self.spec:
            show_argv(self.spec['argv'])
        for number in SEEN:
            signal.signal(number, self.on_signal)
        signal.signal(signal.SIGCHLD, self.on_child)
        if self.spec.get('uid'):
            become_user(self.spec['uid'])
        held = bytearray(self.spec.get('mib', 0) << 20)
        held[::4096] = b'x' * len(held[::4096])
        self.say('B', self.pid, self.start, self.spec['id'])
        poll = select.poll()
        poll.register(self.orders, select.POLLIN)
        while True:
            if poll.poll():
                for order in os.read(self.orders, 4096).decode().splitlines() or ['exit']:
                    self.obey(*order.split())

    def on_signal(self, number, _frame):
        # Asked anew: a process that was just forked from us has our handlers, and is another one.
        self.say('S', int(os.readlink('/proc/self')), start_of('self'), number)
        if number == signal.SIGTERM and not self.spec.get('stubborn'):
            os._exit(0)

    def on_child(self, *_):
        reap(lambda pid, start, status: self.say('X', pid, start, status))

    def obey(self, what, *more):
        if what == 'exit':
            os._exit(0)
        elif what == 'rename':
            LIBC.prctl(PR_SET_NAME, more[0].encode())
        elif what == 'setuid':
            become_user(int(more[0]))
        elif what == 'exec':
            os.set_inheritable(self.log, True)
            os.execv('/usr/bin/perl', ['perl', '-e', PERL, str(self.log), str(self.pid), str(self.start)])
        elif what in ('fork', 'nest'):
            # In a nested namespace the child can be given any number, such as one that is on the plan.
            if what == 'nest' and LIBC.unshare(CLONE_NEWPID) != 0:
                what = 'fork'
            reading, _writing = os.pipe()
            if os.fork() == 0:
                if what == 'nest':
                    in_nest(int(more[0]))
                Child({**self.spec, 'id': what, 'mib': 0, 'stubborn': False}, self.log, reading).run()
        self.say('D', self.pid, self.start, what)


def become_user(uid):
    os.setresuid(uid, uid, uid)
    # Or our own /proc files would be root's.
    LIBC.prctl(PR_SET_DUMPABLE, 1)


def in_nest(wanted):
    """Process 1 of the nested namespace waits; its child, with the wanted number in there, goes on."""
    with open('/proc/sys/kernel/ns_last_pid', 'w') as f:
        f.write(str(wanted - 1))
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        os._exit(0)


def show_argv(argv):
    """Writes a command line over our own, where the kernel reads it from. We were started with one of that length."""
    with open('/proc/self/stat', 'rb') as f:
        fields = f.read().rpartition(b')')[2].split()
    begin, end = int(fields[45]), int(fields[46])
    line = ('\0'.join(argv) + '\0').encode()
    with open('/proc/self/mem', 'r+b', 0) as f:
        f.seek(begin)
        f.write(line[: end - begin].ljust(end - begin, b'\0'))


def reap(tell):
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if found is None:
            return
        start = start_of(found.si_pid)
        _, status = os.waitpid(found.si_pid, 0)
        tell(found.si_pid, start, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0)


class Arena:
    def __init__(self):
        self.reading, self.log = os.pipe()
        os.set_blocking(self.reading, False)
        self.pipes, self.later, self.reuse, self.reused = {}, [], {}, 0
        self.unread, self.heard = b'', b''
        self.wake_reading, self.wake = os.pipe()
        for end in (self.wake_reading, self.wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self.wake)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def emit(self, **what):
        os.write(1, (json.dumps(what) + '\n').encode())

    def start(self, spec):
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            if spec.get('own_session', True):
                os.setsid()
            if 'argv' in spec:
                become(spec, self.log, reading)
            Child(spec, self.log, reading).run()
        os.close(reading)
        self.pipes[pid] = writing
        return pid

    def ended(self, pid, start, status):
        self.emit(ended=[pid, start, status])
        if pid in self.pipes:
            os.close(self.pipes.pop(pid))
        name = self.reuse.pop(pid, None)
        if name is None:
            return
        for _ in range(3):
            with open('/proc/sys/kernel/ns_last_pid', 'w') as f:
                f.write(str(pid - 1))
            got = self.start({'id': f'after-{pid}', 'name': name})
            if got == pid:
                return
            # Somebody was faster: this one leaves again.
            self.tell(got, 'exit')

    def tell(self, pid, order):
        try:
            os.write(self.pipes[pid], (order + '\n').encode())
        except (KeyError, BrokenPipeError):
            pass

    def obey(self, order):
        if 'start' in order:
            for spec in order['start']:
                self.start(spec)
        elif 'reuse' in order:
            self.reuse = {int(pid): name for pid, name in order['reuse'].items()}
        elif 'later' in order:
            now = time.monotonic()
            self.later += sorted((now + ms / 1000, pid, what) for ms, pid, what in order['later'])
        elif 'clear' in order:
            self.clear()

    def clear(self):
        """Tells all that was written down until now, then ends everybody but ourselves."""
        self.reuse, self.later = {}, []
        self.listen()
        reap(self.ended)
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass
        while True:
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                break
        for pipe in self.pipes.values():
            os.close(pipe)
        self.pipes = {}
        self.listen()
        self.emit(cleared=True)

    def listen(self):
        while True:
            try:
                data = os.read(self.reading, 65536)
            except BlockingIOError:
                return
            *lines, self.heard = (self.heard + data).split(b'\n')
            for line in lines:
                self.emit(said=line.decode().split())

    def run(self):
        poll = select.poll()
        for fd in (0, self.reading, self.wake_reading):
            poll.register(fd, select.POLLIN)
        self.emit(up=os.getpid())
        while True:
            wait = max(0, (self.later[0][0] - time.monotonic()) * 1000) if self.later else None
            ready = {fd for fd, _ in poll.poll(wait)}
            if self.wake_reading in ready:
                os.read(self.wake_reading, 4096)
            reap(self.ended)
            while self.later and self.later[0][0] <= time.monotonic():
                _, pid, what = self.later.pop(0)
                self.tell(pid, what)
            self.listen()
            if 0 in ready:
                data = os.read(0, 65536)
                if not data:
                    return
                *lines, self.unread = (self.unread + data).split(b'\n')
                for line in lines:
                    self.obey(json.loads(line))


def become(spec, log, reading):
    """Starts this file anew with room for the command line to show; the working folder holds it under the name h."""
    os.chdir(spec['cwd'])
    for fd in (log, reading):
        os.set_inheritable(fd, True)
    room = len(('\0'.join(spec['argv']) + '\0').encode()) - len('n\0h\0\0')
    os.execve(sys.executable, ['n', 'h', 'x' * room], {EXEC_SPEC: json.dumps([spec, log, reading])})


if EXEC_SPEC in os.environ:
    Child(*json.loads(os.environ[EXEC_SPEC])).run()
else:
    gc.freeze()
    Arena().run()
