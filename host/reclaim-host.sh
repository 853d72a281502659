#!/bin/sh
# reclaim-host: looks at this machine's memory and acts on exactly what it is told, for Reclaim.
#
# Two ways in. Agentless: this file and then one call, `reclaim_host 'REQUEST'`, arrive on the stdin of `sh -s`.
# Installed: root-owned as /usr/local/sbin/reclaim-host, it reads REQUEST from stdin. Nothing is ever in an argument list.
# A request cut short does nothing: until the call at its very end, the file only defines functions.
#
# REQUEST is lines of words, made of A-Za-z0-9._/- and \0ooo for any other byte:
#   reclaim 1 NONCE | run ID | verb VERB | (settings of the verb) | target WORD... | protect EXE COMM UNIT USER | end NONCE
# ANSWER is frames: a line `NONCE KIND WORD...`, then raw bytes up to the next line that begins with NONCE. The nonce is
# new for every run and in no argument list or environment, so no process name can forge a frame. The last frame is
# `end`; an answer without it was cut off.
#
# Runs under dash, bash and busybox sh. Needs awk, grep, find; uses timeout, gzip, flock, perl, python3 where present.

# A prepared environment must not steer a root shell.
unset N RUN VERB TARGETS PROTECT W JOBS CDPATH ENV BASH_ENV GREP_OPTIONS POSIXLY_CORRECT TZ
unset PERL5OPT PERL5LIB PERLLIB PERL5DB AWKPATH TMPDIR
LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin
export LC_ALL PATH
umask 077
NL='
'
# Lists are lines of words: IFS is NL while a `for` takes the lines, SPACES everywhere else.
SPACES=" 	$NL"
IFS=$SPACES

# ---- frames and small tools -----------------------------------------------------------------------------------------

frame() { printf '\n%s %s\n' "$N" "$*"; }
# error CODE SENTENCE: why nothing (more) was done.
error() { frame error "$1"; printf '%s\n' "$2"; }
decode() { DECODED=$(printf '%b.' "$1") && DECODED=${DECODED%.}; }
is_number() { case $1 in '' | *[!0-9]* | ????????????????????*) return 1 ;; esac; }

# now: hundredths of a second since boot, without a fork. The 1 keeps "08" from being read as octal.
now() { read -r up rest </proc/uptime && NOW=$((${up%.*} * 100 + 1${up#*.} - 100)); }
nap() { sleep "$1" 2>/dev/null || sleep 1; }

# limit SECONDS COMMAND...: the command, killed when its time is up (status 137). A process stuck in the kernel (D) does
# not even die of that, so whatever may get stuck runs as a job below and nobody waits for it.
if command -v timeout >/dev/null 2>&1; then
  limit() { timeout -s KILL "$@"; }
else
  limit() {
    limit_s=$1; shift
    "$@" & limit_c=$!
    # Its sleep outlives us, so it must not hold the lock.
    (sleep "$limit_s"; kill -KILL "$limit_c") >/dev/null 2>&1 3>&- 8>&- 9>&- & limit_w=$!
    wait "$limit_c"; limit_r=$?
    kill "$limit_w" 2>/dev/null
    return $limit_r
  }
fi

# A private folder for what jobs print. Memory file systems first: the disk of a box in trouble may be full or dead.
make_workdir() {
  for d in /run "/run/user/$ME" /tmp /dev/shm; do
    W=$(mktemp -d "$d/reclaim-XXXXXX" 2>/dev/null) && return 0
  done
  return 1
}
drop_workdir() { case $W in */reclaim-??????) rm -rf "$W" ;; esac; }

# job NAME TOOL COMMAND...: in the background, output to $W/NAME, status to $W/NAME.rc; 127 where TOOL is not installed.
job() {
  job_n=$1 job_tool=$2; shift 2
  if command -v "$job_tool" >/dev/null 2>&1; then
    ("$@" >"$W/$job_n" 2>/dev/null; echo $? >"$W/$job_n.rc") </dev/null >/dev/null 2>&1 3>&- 8>&- 9>&- &
  else
    : >"$W/$job_n"
    echo 127 >"$W/$job_n.rc"
  fi
  JOBS="$JOBS $job_n"
}
# await SECONDS: until every job has ended or the time is up, from now.
await() {
  now; await_end=$((NOW + $1 * 100))
  for j in $JOBS; do
    until [ -s "$W/$j.rc" ]; do
      now; [ "$NOW" -lt "$await_end" ] || return 1
      nap 0.1
    done
  done
}
# tell_job NAME TITLE: the frame of a command. No status = it had not ended when the time was up.
tell_job() {
  job_rc=
  [ ! -s "$W/$1.rc" ] || read -r job_rc <"$W/$1.rc"
  case $job_rc in
  '' | 124 | 137) frame command - 1 "$2" ;;
  *) frame command "$job_rc" 0 "$2" ;;
  esac
  [ ! -s "$W/$1" ] || cat "$W/$1"
}

# ---- collect --------------------------------------------------------------------------------------------------------

# One pass over every /proc/PID/stat. stdout: the files, each line with its path (from /proc) before it, so that a newline
# in a name forges nothing. stderr: lists of pids: u all with memory of their own, s those that can matter, d the s stuck in the
# kernel, b the biggest (for smaps_rollup, which stalls a very large process: none above 64 GiB), c ourselves up to pid 1.
STAT_PASS='
function pick(p) { while (p > 0 && (p in parent) && !(p in chosen)) { chosen[p] = 1; p = parent[p] } }
BEGIN {
  while ((getline l < "/proc/meminfo") > 0) { split(l, m, " "); if (m[1] == "SwapTotal:") swap += m[2]; if (m[1] == "SwapFree:") swap -= m[2] }
  for (i = 1; i < ARGC; i++) {
    f = ARGV[i] "/stat"; text = ""
    while ((getline l < f) > 0) { print f ":" l; text = text " " l }
    close(f)
    if (!match(text, /\) [A-Za-z] [-0-9 ]*$/)) continue
    p = f + 0; split(substr(text, RSTART + 2), a, " ")
    parent[p] = a[2]
    if (int(a[7] / 2097152) % 2) continue
    state[p] = a[1]; session[p] = a[4]; rss[p] = a[22]; vsize[p] = a[21]; users++
  }
  for (p in rss) {
    if (users <= 400 || rss[p] >= 2048 || state[p] == "Z" || (swap > 262144 && vsize[p] > 67108864)) { pick(p); pick(session[p]) }
    list["u"] = list["u"] " " p
  }
  for (p in chosen) {
    if (!(p in rss)) continue
    if (state[p] == "D") list["d"] = list["d"] " " p; else list["s"] = list["s"] " " p
  }
  for (n = 0; n < 24; n++) {
    top = 0
    for (p in rss) if (rss[p] >= 16384 && rss[p] <= 16777216 && state[p] != "D" && (!top || rss[p] > rss[top])) top = p
    if (!top) break
    list["b"] = list["b"] " " top; delete rss[top]
  }
  f = "/proc/self/stat"
  for (n = 0; n < 64 && (getline l < f) > 0; n++) {
    list["c"] = list["c"] " " (l + 0)
    close(f)
    if (!match(l, /\) [A-Za-z] [-0-9 ]*$/)) break
    split(substr(l, RSTART + 2), a, " ")
    if (a[2] < 1) break
    f = "/proc/" a[2] "/stat"
  }
  for (k in list) print k list[k] > "/dev/stderr"
}'

# paths FILE PID...: PATHS = PID/FILE ...
paths() { paths_f=$1; shift; PATHS=; [ $# -eq 0 ] || PATHS=$(printf " %s/$paths_f" "$@"); }

# Cheap figures only; the same ones serve to measure between steps.
MEMORY_FILES='/proc/meminfo /proc/vmstat /proc/zoneinfo /proc/uptime /proc/pressure/memory /proc/spl/kstat/zfs/arcstats
/proc/sys/kernel/random/boot_id'
OTHER_FILES='/proc/slabinfo /proc/sysvipc/shm /proc/mounts /proc/swaps /proc/sys/kernel/osrelease
/proc/sys/kernel/pid_max /proc/sys/vm/nr_overcommit_hugepages /proc/sys/fs/dentry-state /proc/modules'

collect_memory() {
  frame lines; grep -sH '' $MEMORY_FILES
  frame command 0 0 'free -k'; free -k 2>/dev/null
}

# The jobs of collect. Each bounds its own commands; the whole is bounded by await.
j_nvidia() { limit "$SECONDS_MAX" nvidia-smi "$1" --format=csv,noheader,nounits; }
j_sessions() { [ -d /run/systemd/system ] || return 1; limit 5 loginctl list-sessions --no-legend; }
j_slurm() { read -r h </proc/sys/kernel/hostname; limit "$SECONDS_MAX" squeue -h -w "${h%%.*}" -o '%A %u %T %j'; }
# The client alone is slow to find out that nobody answers it.
j_docker() { [ -S /run/docker.sock ] || [ -S /var/run/docker.sock ] || return 1; limit "$SECONDS_MAX" docker ps --no-trunc --format '{{.ID}} {{.Names}}'; }
j_oom() {
  limit 5 dmesg >"$W/dmesg" 2>/dev/null || return $?
  # Of the table of tasks that comes with a kill, those of 4096 pages and more: they tell whether the victim was the culprit.
  awk '/invoked oom-killer|oom-kill:|[Oo]ut of memory|oom_reaper|[Kk]illed process/ { print; next }
    match($0, /\[ *[0-9]+\] +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+ /) {
      n = split(substr($0, RSTART, RLENGTH), task, / +/); if (task[n - 1] >= 4096) print
    }' "$W/dmesg" | tail -n 2000
  return 0
}
j_users() {
  [ ! -r /etc/passwd ] || awk -F: '$3 ~ /^[0-9]+$/ && NR < 5000 { print $3, $1 }' /etc/passwd
  # Accounts that live in a directory service: asked for by number, since it may be slow or gone.
  uids=$(stat -c %u $SEL 2>/dev/null | awk -F: 'NR == FNR && FILENAME != "-" { known[$3] = 1; next }
    !($1 in known) && !seen[$1]++ { print $1 }' /etc/passwd -)
  [ -z "$uids" ] || ! command -v getent >/dev/null || limit 3 getent passwd $uids | awk -F: '{ print $3, $1 }'
  return 0
}
j_links() {
  paths exe $SEL $STUCK; links=$PATHS; paths cwd $SEL $STUCK
  if $GNU; then
    limit "$SECONDS_MAX" find $links $PATHS -maxdepth 0 -printf '%h %f %l\0'
    return 0
  fi
  for l in $links $PATHS; do
    t=$(readlink "$l") && printf '%s %s %s\0' "${l%/*}" "${l#*/}" "$t"
  done
  return 0
}
j_shm() {
  [ -d /dev/shm ] || return 127
  if $GNU; then
    limit "$SECONDS_MAX" find /dev/shm -xdev -type f -printf '%D:%i %U %s %k %Ts %p\0'
    return $?
  fi
  limit "$SECONDS_MAX" find /dev/shm -xdev -type f -exec sh -c 'for f; do
    t=$(stat -c "%d:%i %u %s %b %B %Y" "$f") || continue
    set -f; set -- $t; printf "%s %s %s %s %s %s\0" "$1" "$2" "$3" $(($4 * $5 / 1024)) "$6" "$f"; done' sh {} \;
}
# Who holds GPU devices and shared memory. Looking into every process costs as much as all the rest together, so at first
# only those that can matter are looked into. What they do not hold and could be proposed for removal (64 MiB or more of
# it, and only root may) must be held by nobody at all: the kernel says so, or every process is looked into.
j_holders() {
  j_shm >"$W/shm"
  echo $? >"$W/shm.rc"
  look_for_holders $SEL $STUCK >"$W/held"
  cat "$W/held"
  set -- $SEL $STUCK; looked=$#; set -- $USERS
  [ "$ME" -eq 0 ] && [ -s "$W/shm" ] && [ $# -gt $looked ] || return 0
  unheld >"$W/unheld"
  case $? in 0) return 0 ;; 2) ! limit 5 perl -e "$NOBODY_PERL" "$W/lease" <"$W/unheld" || return 0 ;; esac
  look_for_holders $USERS
}
look_for_holders() {
  paths fd "$@"
  if $GNU; then
    limit "$SECONDS_MAX" find $PATHS -maxdepth 1 \( -lname '/dev/nvidia*' -o -lname /dev/kfd -o -lname '/dev/dri/render*' \
      -o -lname '/dev/shm/*' -o -lname '/memfd:*' \) -printf '%h %l\0'
  else
    limit "$SECONDS_MAX" ls -l $PATHS | awk '/^[0-9]+\/fd:$/ { p = $0; sub(/:$/, "", p) }
      match($0, / -> (\/dev\/nvidia|\/dev\/kfd|\/dev\/dri\/render|\/dev\/shm\/|\/memfd:)/) { printf "%s %s%c", p, substr($0, RSTART + 4), 0 }'
  fi
  [ ! -s "$W/shm" ] || j_mapped "$@"
}
# A file can be mapped with no descriptor left open (torch file_system strategy). maps takes a lock that may be stuck.
j_mapped() {
  paths status "$@"
  holders=$(grep -sl '^RssShmem:[[:space:]]*[1-9]' $PATHS)
  PATHS=
  for p in $holders; do PATHS="$PATHS ${p%status}maps"; done
  [ -z "$PATHS" ] || limit "$SECONDS_MAX" grep -sHF ' /dev/shm/' $PATHS </dev/null |
    awk '{ n = index($0, " /dev/shm/"); h = $0; sub(/\/maps:.*/, "", h); k = h substr($0, n); if (!seen[k]++) printf "%s/maps%s%c", h, substr($0, n), 0 }'
}
# The files in $W/shm that nobody in $W/held holds, a line each. Status 0 where they are less than 64 MiB, 2 where more, 3
# where a name has a newline (here octal 1) and no line can tell it.
unheld() {
  { tr '\n\0' '\001\n' <"$W/held"; echo; tr '\n\0' '\001\n' <"$W/shm"; } | awk '
    !files { if ($0 == "") files = 1; held[substr($0, index($0, " ") + 1)]; next }
    $4 > 0 {
      p = $0
      for (i = 0; i < 5; i++) p = substr(p, index(p, " ") + 1)
      if (p ~ /\001/) odd = 1; else if (p in held) next
      kib += $4; print p
    }
    END { exit kib < 65536 ? 0 : odd ? 3 : 2 }'
}
# Status 0: nobody has any of the files on stdin open or mapped. The kernel grants a lease for writing only where that is
# so; it is given back at once. Not believed before it was seen to refuse a file that is open.
NOBODY_PERL='use Fcntl qw(O_RDONLY O_NONBLOCK O_NOFOLLOW O_NOATIME F_SETLEASE F_WRLCK); $SIG{IO} = "IGNORE";
sub free { my $f; sysopen($f, $_[0], O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOATIME) && fcntl($f, F_SETLEASE, F_WRLCK) }
open(my $own, ">", $ARGV[0]) or exit 1;
exit 1 if free($ARGV[0]);
close $own;
exit 1 unless free($ARGV[0]);
while (<STDIN>) { chomp; exit 1 unless free($_) }'
# Takes each process's mmap_lock, which one stuck thread can hold for ever: flushed as it goes, so that what was read
# before that is not lost.
j_smaps() {
  paths smaps_rollup $BIG
  limit "$SECONDS_MAX" awk 'BEGIN { for (i = 1; i < ARGC; i++) { f = ARGV[i]; while ((getline l < f) > 0) print f ":" l; close(f); fflush() } }' $PATHS
}
# Same lock. When a process blocks it, go on behind it.
j_cmdlines() {
  paths cmdline "$@"
  if $GNU; then g='-azsH --line-buffered'; else g=-zsH; fi
  for round in 1 2 3; do
    limit 3 grep $g '' $PATHS </dev/null >"$W/cmd.$1"
    rc=$?
    cat "$W/cmd.$1"
    [ $rc -eq 137 ] || return 0
    last=$(tr '\0' '\n' <"$W/cmd.$1" | sed -n 's,^\([0-9]*/cmdline\):.*,\1,p' | tail -n 1)
    case " $PATHS " in *" ${last:--} "*) PATHS=${PATHS#*"$last"} ;; esac
    PATHS=${PATHS# }
    case $PATHS in *' '*) PATHS=${PATHS#* } ;; *) return 0 ;; esac
  done
  return 137
}

collect_full() {
  now; t1=$NOW
  frame lines
  lists=$(awk "$STAT_PASS" [0-9]* 2>&1 >&3)
  SEL= USERS= BIG= STUCK= SELF=
  while read -r kind rest; do
    case $rest in *[!0-9\ ]*) continue ;; esac
    case $kind in u) USERS=$rest ;; s) SEL=$rest ;; b) BIG=$rest ;; d) STUCK=$rest ;; c) SELF=$rest ;; esac
  done <<E
$lists
E
  # GNU tools, or busybox, which lacks half of the options.
  if find /dev/null -maxdepth 0 -printf '' 2>/dev/null; then GNU=true; else GNU=false; fi
  job apps nvidia-smi j_nvidia --query-compute-apps=pid,used_memory,process_name
  job gpus nvidia-smi j_nvidia --query-gpu=index,memory.used,memory.total,utilization.gpu
  job df df limit 5 df -k -t tmpfs
  job sessions loginctl j_sessions
  job slurm squeue j_slurm
  job docker docker j_docker
  job oom dmesg j_oom
  job holders find j_holders
  job links find j_links
  job users awk j_users
  [ -z "$BIG" ] || job smaps awk j_smaps
  frame collector $SELF
  # Builtins only: what is here decides how a process can be signalled and a step bounded.
  frame command 0 0 tools
  for tool in flock timeout gzip python3 perl nvidia-smi; do ! command -v "$tool" >/dev/null 2>&1 || echo "$tool"; done
  frame lines
  paths status $SEL $STUCK; status=$PATHS; paths wchan $STUCK; wchan=$PATHS; paths cgroup $SEL $STUCK
  grep -sH '' $status $wchan $PATHS $OTHER_FILES /sys/kernel/mm/hugepages/*/* /sys/block/zram*/mm_stat
  [ -z "$SEL" ] || job cmdlines grep j_cmdlines $SEL
  [ -z "$STUCK" ] || job stuck grep j_cmdlines $STUCK
  if [ "$WINDOW" != 0 ]; then
    nap "$WINDOW"
    now
    frame later $((NOW - t1))
    paths stat $SEL $STUCK; grep -sH '' /proc/meminfo $PATHS
  fi
  await $((SECONDS_MAX + 1))
  tell_job apps 'nvidia-smi compute-apps'; tell_job gpus 'nvidia-smi gpus'; tell_job df 'df tmpfs'
  tell_job shm 'shm files'; tell_job holders 'fd holders'; tell_job links links; tell_job sessions sessions
  tell_job slurm 'slurm jobs'; tell_job docker 'docker ps'; tell_job oom 'dmesg oom'; tell_job users users
  [ -z "$BIG" ] || { frame lines; cat "$W/smaps"; }
  for j in cmdlines stuck; do
    [ ! -e "$W/$j" ] || tell_job $j "$j"
  done
}

collect() {
  cd /proc || return 1
  # The watcher wants to know of a full /dev/shm.
  if [ "$SCOPE" = memory ]; then
    collect_memory
    shm=$(limit 3 df -k -t tmpfs 2>/dev/null); rc=$?
    if [ $rc -eq 137 ]; then frame command - 1 'df tmpfs'; else frame command $rc 0 'df tmpfs'; fi
    [ -z "$shm" ] || printf '%s\n' "$shm"
    return 0
  fi
  if ! make_workdir; then error no_workdir 'This machine has no folder that can be written to (/run, /tmp and /dev/shm were tried).'; return 1; fi
  # The inner `done` tells a complete look from one whose gzip or shell was killed on the way.
  if command -v gzip >/dev/null 2>&1; then
    frame gzip
    { exec 3>&1; collect_memory; collect_full; frame done; } 2>/dev/null | gzip -1c
  else
    { exec 3>&1; collect_memory; collect_full; frame done; } 2>/dev/null | cat
  fi
  drop_workdir
}

# ---- before acting --------------------------------------------------------------------------------------------------

# A folder of our own for lock and journal, where nobody can have put a link for us to follow.
find_state() {
  if [ "$ME" -eq 0 ] && [ -d /run ]; then STATE=/run/reclaim
  elif [ -d "/run/user/$ME" ] && [ -O "/run/user/$ME" ]; then STATE=/run/user/$ME/reclaim
  else STATE=/tmp/reclaim-$ME; fi
  mkdir -m 700 "$STATE" 2>/dev/null
  [ -d "$STATE" ] && [ ! -L "$STATE" ] && [ -O "$STATE" ]
}

# One run at a time. The lock dies with this shell; jobs do not inherit it.
take_lock() {
  if ! find_state; then error no_state "$STATE is not a folder of ours, so there is no safe place for the lock. Nothing was done."; return 1; fi
  command -v flock >/dev/null 2>&1 || { error no_lock 'flock (util-linux) is not installed on this machine. Nothing was done.'; return 1; }
  { command exec 8>>"$STATE/lock"; } 2>/dev/null && flock -n 8 || {
    holder=
    [ ! -r "$STATE/holder" ] || read -r holder <"$STATE/holder"
    error busy "${holder:-unknown}"
    return 1
  }
  if [ -e "$STATE/run-$RUN.sealed" ]; then error sealed 'This run was closed after its connection was lost, so nothing more is done for it.'; return 1; fi
  printf '%s %s %s %s\n' "$RUN" "$VERB" "$$" "$(date +%s)" >"$STATE/holder"
  JOURNAL=$STATE/run-$RUN
  find "$STATE" -name 'run-*' -mtime +7 -exec rm -f {} + 2>/dev/null
  # The first target tells two steps with the same verb apart.
  note begin "$VERB" "${TARGETS%%"$NL"*}"
}
# note WORD...: one line in the journal, written before its effect is reported, so that whoever comes back after a lost
# connection can learn what happened.
note() { now; printf '%s %s\n' "$NOW" "$*" >>"$JOURNAL"; }

# answer STATE [SENTENCE]: how a step without targets ended.
answer() {
  note "$VERB" "$@"
  frame answer "$1"; shift; printf '%s\n' "$*"
}
# result RESULT TARGETWORDS [SENTENCE]
result() {
  note "$VERB" "$@"
  frame result "$1" "$2"; shift 2; printf '%s\n' "$*"
  # A frame is over when the next one begins: so that this one is seen at once.
  frame next
}

# ---- kill -----------------------------------------------------------------------------------------------------------

# on PID COMMAND...: with descriptor 9 on /proc/PID. It stays with that very process: when it ends every read through it
# fails, also when its number is given to another, and the kernel takes it as a pidfd.
on() {
  on_pid=$1; shift
  { { "$@"; } 9<"/proc/$on_pid"; } 2>/dev/null
}

# Reads stat through descriptor 9. A name may hold anything, also ") " and newlines: what counts is behind the last one.
read_stat() {
  text=
  while IFS= read -r l || [ -n "$l" ]; do text="$text$l "; done </proc/self/fd/9/stat || return 1
  [ -n "$text" ] || return 1
  COMM=${text#*\(}; COMM=${COMM%\)*}
  set -- ${text##*\) }
  P_STATE=$1 P_PARENT=$2 P_SESSION=$4 P_TTY=$5 P_FLAGS=$7 P_THREADS=${18} P_START=${20}
}
# A zombie holds no memory, unless only its first thread ended and others go on.
is_dead() { case $P_STATE in X) return 0 ;; Z) [ "$P_THREADS" -le 1 ] ;; *) return 1 ;; esac; }
still() { read_stat && [ "$P_START" = "$1" ] && ! is_dead; }

read_uid() {
  P_UID=
  while read -r key value rest; do
    case $key in Uid:) P_UID=$value; break ;; esac
  done </proc/self/fd/9/status
}
read_exe() { P_EXE=$(readlink /proc/self/fd/9/exe && echo .) || return 1; P_EXE=${P_EXE%"$NL".}; P_EXE=${P_EXE% (deleted)}; }

# Programs a plan must never name, whatever the reason. Name of the program file or of the process.
is_protected_name() {
  case $1 in
  init | systemd | systemd-* | '(sd-pam)' | dbus | dbus-* | udevd | sshd | sshd-* | login | sudo | su | agetty | getty | cron | crond | atd) ;;
  slurmd | slurmstepd | slurmctld | slurmdbd | munged | dockerd | docker-* | containerd | containerd-* | runc | crio | conmon | podman | kubelet) ;;
  nvidia-persiste* | nv-fabricmanag* | nv-hostengine | dcgm* | nvidia-imex* | nvidia-smi) ;;
  Xorg | Xwayland | gdm* | gnome-shell | sssd* | chronyd | ntpd | rpcbind | rpc.* | gssproxy | automount | multipathd | iscsid | zed) ;;
  mmfsd | weka* | lnet* | beegfs* | ceph* | postgres | mysqld | mariadbd | redis-server | valkey-server | mongod) ;;
  tmux* | screen | SCREEN | node_exporter | telegraf | netdata | prometheus | rsyslogd | auditd | NetworkManager | polkitd) ;;
  *) return 1 ;;
  esac
}
is_interactive() {
  [ "$P_TTY" -ne 0 ] || return 1
  case $COMM in
  vi | vim | nvim | nano | emacs* | micro | hx) ;;
  sh | bash | dash | zsh | fish | csh | tcsh | ksh) [ "$P_SESSION" = "$on_pid" ] ;;
  *) return 1 ;;
  esac
}
# A rule from policy.protect matches when every part it names does.
is_protected_by_rule() {
  IFS=$NL
  for rule in $PROTECT; do
    IFS=$SPACES; set -- $rule
    [ "$1" = - ] || { decode "$1"; [ "$P_EXE" = "$DECODED" ] || continue; }
    [ "$2" = - ] || { decode "$2"; [ "$COMM" = "$DECODED" ] || continue; }
    [ "$3" = - ] || { decode "$3"; in_unit "$DECODED" || continue; }
    [ "$4" = - ] || { decode "$4"; is_user "$DECODED" || continue; }
    return 0
  done
  IFS=$SPACES
  return 1
}
in_unit() {
  while IFS= read -r l; do
    case $l/ in *"/$1/"*) return 0 ;; esac
  done </proc/self/fd/9/cgroup
  return 1
}
# Names are looked up where the machine looks them up, which can be slow or broken: then the answer is yes.
is_user() {
  [ "$1" != "$P_UID" ] || return 0
  user_id=$(limit 3 id -u "$1")
  case $? in 0) [ "$user_id" = "$P_UID" ] ;; 1) return 1 ;; *) return 0 ;; esac
}

# may_signal START UID EXE: sets VERDICT (ok or a result word) and WHY, from what descriptor 9 shows right now.
may_signal() {
  VERDICT=already_gone WHY=
  read_stat || return
  [ "$P_START" = "$1" ] || { VERDICT=not_same_process WHY='its number belongs to another process now'; return; }
  ! is_dead || return
  VERDICT=refused
  [ "$on_pid" -ge 2 ] && [ $((P_FLAGS & 2097152)) -eq 0 ] || { WHY='it is part of the system kernel or init'; return; }
  case " $SELF " in *" $on_pid "*) WHY='it carries the connection Reclaim itself works through'; return ;; esac
  read_uid
  read_exe || P_EXE=
  if [ "$2" != - ] && [ "$P_UID" != "$2" ]; then VERDICT=not_same_process WHY="it runs as uid ${P_UID:-unknown} now, not $2"; return; fi
  if [ "$3" != - ]; then
    [ -n "$P_EXE" ] || { WHY='which program it runs could not be read, so it was left alone'; return; }
    decode "$3"
    [ "$P_EXE" = "${DECODED% (deleted)}" ] || { VERDICT=not_same_process WHY='it runs another program now'; return; }
  fi
  if is_protected_name "$COMM" || is_protected_name "${P_EXE##*/}"; then WHY='it is on the list of programs never to be killed'; return; fi
  if is_interactive; then WHY='it is somebody at a terminal'; return; fi
  read -r adj </proc/self/fd/9/oom_score_adj
  [ "${adj:--1000}" != -1000 ] || { WHY='it is marked never to be killed (oom_score_adj -1000)'; return; }
  ! is_protected_by_rule || { WHY='policy.protect forbids it'; return; }
  VERDICT=ok
}

# How to signal through descriptor 9 itself, so that nothing can come between the check and the signal. System call 424 is
# pidfd_send_signal everywhere but on Alpha. Without perl or python3 the shell's own kill follows the check at once.
SIGNAL_PERL='exit(syscall(424, 9, $ARGV[0] + 0, 0, 0) == 0 ? 0 : $! + 0)'
SIGNAL_PYTHON='import signal, sys
try: signal.pidfd_send_signal(9, int(sys.argv[1]))
except OSError as e: sys.exit(e.errno)'
signal_perl() { limit 5 perl -e "$SIGNAL_PERL" "$1"; }
signal_python() { limit 5 python3 -I -S -c "$SIGNAL_PYTHON" "$1"; }
signal_shell() { kill -"$1" "$on_pid" || { still "$P_START" && return 1 || return 3; }; }
find_signaller() {
  if on $$ signal_perl 0; then SIGNALLER=signal_perl
  elif on $$ signal_python 0; then SIGNALLER=signal_python
  else SIGNALLER=signal_shell; fi
}

# signal_checked NUMBER START UID EXE
signal_checked() {
  sig=$1; shift
  may_signal "$@"
  [ "$VERDICT" = ok ] || return
  note "signal $sig" "$on_pid:$1" "${SIGNALLER#signal_}"
  $SIGNALLER "$sig"
  case $? in
  0) VERDICT=sent ;;
  3) VERDICT=already_gone ;;
  1) VERDICT=refused WHY="no permission: it belongs to uid ${P_UID:-unknown}, and this account may not signal that" ;;
  *) VERDICT=refused WHY='the kernel did not take the signal' ;;
  esac
}

# wait_for LIST HUNDREDTHS RESULT: reports each that ends as RESULT; LEFT = those that have not when the time is up.
wait_for() {
  LEFT=$1 wait_result=$3; now; wait_end=$((NOW + $2))
  while [ -n "$LEFT" ]; do
    remaining=
    IFS=$NL
    for t in $LEFT; do
      IFS=$SPACES
      set -- $t
      if on "$1" still "$2"; then remaining=$remaining${remaining:+$NL}$t; else result "$wait_result" "$1 $2"; fi
    done
    LEFT=$remaining
    [ -n "$LEFT" ] || break
    now; [ "$NOW" -lt "$wait_end" ] || break
    nap 0.1
  done
}

# Who came back: same name under the same living parent, started since. Reads `PARENT NAME PID START` of the dead.
RESPAWN_PASS='
BEGIN { files = ARGC; ARGC = 1 }
{ dead[$1 " " $2] = dead[$1 " " $2] " " $3 ":" $4 }
END {
  for (i = 1; i < files; i++) {
    f = ARGV[i]; text = ""
    while ((getline l < f) > 0) text = text " " l
    close(f)
    if (!match(text, /\) [A-Za-z] [-0-9 ]*$/)) continue
    split(substr(text, RSTART + 2), a, " "); n = index(text, "(")
    k = a[2] " " substr(text, n + 1, RSTART - n - 1)
    if ((k in dead) && a[20] >= since && a[1] != "Z") { split(dead[k], d, " "); for (j in d) { print d[j], f + 0, a[2]; delete dead[k]; break } }
  }
}'
tell_respawned() {
  [ -n "$ENDED" ] || return 0
  nap 0.3
  came_back=$(cd /proc && set +f && printf '%s' "$ENDED" | awk -v since="$1" "$RESPAWN_PASS" [0-9]*/stat 2>/dev/null)
  IFS=$NL
  for t in $came_back; do
    IFS=$SPACES; set -- $t
    # Under init, a like name is proof only where a service manager restarts it.
    [ "$3" != 1 ] || grep -qs '\.service' "/proc/$2/cgroup" || continue
    result respawned "${1%:*} ${1#*:}" "it ended, but its parent (pid $3) started it again as pid $2"
  done
  IFS=$SPACES
}

do_kill() {
  read -r boot </proc/sys/kernel/random/boot_id
  if [ "$boot" != "$BOOT" ]; then error rebooted "$boot"; return 1; fi
  own_chain
  find_signaller
  now; began=$NOW
  ENDED= waiting=
  IFS=$NL
  for t in $TARGETS; do
    IFS=$SPACES; set -- $t
    VERDICT=already_gone WHY=
    on "$1" signal_checked 15 "$2" "$3" "$4"
    if [ "$VERDICT" != sent ]; then result "$VERDICT" "$1 $2" "$WHY"; continue; fi
    waiting=$waiting${waiting:+$NL}$t
    case $COMM in *[!A-Za-z0-9_.:+/-]*) ;; *) ENDED="$ENDED$P_PARENT $COMM $1 $2$NL" ;; esac
  done
  IFS=$SPACES
  wait_for "$waiting" "$GRACE" exited
  waiting=
  IFS=$NL
  for t in $LEFT; do
    IFS=$SPACES; set -- $t
    VERDICT=already_gone
    on "$1" signal_checked 9 "$2" "$3" "$4"
    case $VERDICT in
    sent) waiting=$waiting${waiting:+$NL}$t ;;
    already_gone | not_same_process) result exited "$1 $2" ;;
    *) result "$VERDICT" "$1 $2" "$WHY" ;;
    esac
  done
  IFS=$SPACES
  # Giving back hundreds of GiB takes the kernel seconds.
  wait_for "$waiting" 1500 killed
  IFS=$NL
  for t in $LEFT; do
    IFS=$SPACES; set -- $t
    on "$1" tell_stuck "$2"
  done
  IFS=$SPACES
  tell_respawned "$began"
}
tell_stuck() {
  still "$1" || { result killed "$on_pid $1"; return; }
  wchan=
  read -r wchan </proc/self/fd/9/wchan
  case $wchan in '' | 0 | *[!A-Za-z0-9_.]*) wchan= ;; *) wchan=" in $wchan" ;; esac
  result still_there "$on_pid $1" "it did not end on KILL; the kernel has it in state $P_STATE$wchan"
}
# SELF = this shell and everything above it.
own_chain() {
  SELF= chain=$$
  while [ "$chain" -gt 0 ] && on "$chain" read_stat; do SELF="$SELF $chain"; chain=$P_PARENT; done
}

# ---- remove-files and ipcrm -----------------------------------------------------------------------------------------

# find_held: HELD = dev:ino of those targets that any process has open or mapped. Also sets BLIND to a process that could
# not be looked into. Names only narrow the search; what counts is device and inode.
find_held() {
  set +f
  names= inodes=
  : >"$W/names"
  IFS=$NL
  for t in $TARGETS; do
    IFS=$SPACES; set -- $t
    decode "$3"
    printf '%s' "${DECODED##*/}" | tr '\n' '?' | sed 's/[][*\\]/\\&/g; s/.*/*\/&*/' >>"$W/names"
    echo >>"$W/names"
    major=$(($1 >> 8 & 4095)) minor=$(($1 & 255 | $1 >> 12 & 1048320))
    inodes="$inodes|$(printf '%02x:%02x %s' $major $minor "$2")"
  done
  IFS=$SPACES
  JOBS=
  job fds find held_by_fd
  job maps grep held_by_map "${inodes#|}"
  HELD= BLIND=unknown
  await "$SECONDS_MAX" || return 1
  BLIND=$(sed -n 's,.*/proc/\([0-9]*\)/\(fd\|maps\).*Permission denied.*,\1,p' "$W/fds.err" "$W/maps.err" | grep -vx 1 | head -n 1)
  HELD=" $(cat "$W/fds" "$W/maps" | tr '\n' ' ')"
  set -f
}
held_by_fd() {
  cd /proc || return 1
  if find /dev/null -maxdepth 0 -lname x 2>/dev/null; then
    set --
    while IFS= read -r n; do set -- "$@" -o -lname "$n"; done <"$W/names"
    shift
    find /proc/[0-9]*/fd -maxdepth 1 \( "$@" \) -exec stat -L -c %d:%i {} + 2>"$W/fds.err"
  else
    # No way to ask by name: every open file, which may wait for a dead file system. Then the answer is "unknown".
    find /proc/[0-9]*/fd -maxdepth 1 -type l -exec stat -L -c %d:%i {} + 2>"$W/fds.err"
  fi
  return 0
}
held_by_map() {
  grep -hoE "^[^ ]+ [^ ]+ [^ ]+ ($1) " /proc/[0-9]*/maps 2>"$W/maps.err" | while read -r range perms offset device inode; do
    major=$((0x${device%:*})) minor=$((0x${device#*:}))
    echo "$((major << 8 | minor & 255 | (minor & 1048320) << 12)):$inode"
  done
  return 0
}

do_remove_files() {
  [ "$ME" -eq 0 ] || { refuse_all 'only root can see every process that may hold it'; return; }
  make_workdir || { refuse_all 'no folder can be written to (/run, /tmp, /dev/shm)'; return; }
  if ! find_held; then refuse_all 'looking for its holders took too long, so it counts as held'
  elif [ -n "$BLIND" ]; then refuse_all "process $BLIND could not be looked into, so it counts as held"
  else
    SINCE=$(($(date +%s) - MIN_AGE))
    IFS=$NL
    for t in $TARGETS; do
      IFS=$SPACES; set -- $t
      decode "$3"
      remove_one "$1:$2" "$DECODED"
    done
    IFS=$SPACES
  fi
  cd /
  drop_workdir
}
refuse_all() {
  why=$1
  IFS=$NL
  for t in $TARGETS; do IFS=$SPACES; set -- $t; result refused "$1:$2" "$why"; done
  IFS=$SPACES
}
# remove_one DEV:INO PATH. Standing in the folder, nobody can put another in its place while we look.
remove_one() {
  dir=${2%/*} name=./${2##*/}
  case $2/ in *//* | */./* | */../*) dir= ;; /*) ;; *) dir= ;; esac
  [ -n "$dir" ] || { result refused "$1" 'its path is not plain'; return; }
  case $name in ./sem.*) result refused "$1" 'it is a semaphore'; return ;; esac
  cd -P "$dir" 2>/dev/null || { result already_gone "$1"; return; }
  [ "$(pwd -P)" = "$dir" ] || { result refused "$1" 'there is a symbolic link in its path'; return; }
  case $(stat -f -c %T . 2>/dev/null) in tmpfs | ramfs) ;; *) result refused "$1" 'it does not lie in memory (tmpfs)'; return ;; esac
  [ ! -L "$name" ] || { result refused "$1" 'a symbolic link has its name now'; return; }
  facts=$(stat -c '%d:%i %h %Y %Z' "$name" 2>/dev/null) || { result already_gone "$1"; return; }
  key=$1
  set -- $facts
  [ "$1" = "$key" ] || { result refused "$key" 'another file has its name now'; return; }
  [ -f "$name" ] || { result refused "$key" 'it is not a plain file'; return; }
  [ "$2" = 1 ] || { result refused "$key" 'it has a second name elsewhere'; return; }
  case $HELD in *" $key "*) result in_use "$key" 'a process has it open or mapped'; return ;; esac
  [ "$3" -le "$SINCE" ] && [ "$4" -le "$SINCE" ] || { result refused "$key" "it was changed less than $MIN_AGE seconds ago"; return; }
  note removing "$key"
  if rm -f "$name" 2>/dev/null && [ ! -e "$name" ]; then result removed "$key"; else result refused "$key" 'the kernel did not let it go'; fi
}

do_ipcrm() {
  boot_time=$(awk '$1 == "btime" { print $2 }' /proc/stat)
  SINCE=$(($(date +%s) - MIN_AGE))
  IFS=$NL
  for t in $TARGETS; do IFS=$SPACES; set -- $t; ipcrm_one "$1"; done
  IFS=$SPACES
}
segment() { awk -v id="$1" '$2 == id { print $5, $6, $7, $12, $13, $14 }' /proc/sysvipc/shm; }
ipcrm_one() {
  id=$1
  set -- $(segment "$id")
  [ $# -eq 6 ] || { result already_gone "$id"; return; }
  [ "$3" -eq 0 ] || { result in_use "$id" "$3 processes are attached to it"; return; }
  for time in "$4" "$5" "$6"; do
    [ "$time" -le "$SINCE" ] || { result refused "$id" "it was used less than $MIN_AGE seconds ago"; return; }
  done
  # Its maker or last user, still running since before it was made: it may come back to it.
  for p in "$1" "$2"; do
    if [ "$p" -gt 0 ] && on "$p" read_stat && ! is_dead && [ $((boot_time + P_START / 100)) -le "$6" ]; then
      result in_use "$id" "process $p, which made or used it, is still running"
      return
    fi
  done
  note removing "$id"
  if ipcrm -m "$id" 2>/dev/null && [ -z "$(segment "$id")" ]; then result removed "$id"
  else result refused "$id" 'ipcrm is missing or was not allowed to remove it'; fi
}

# journal: what a run did here, and whether some run is still at work (the lock is held). `seal`, done while none is, makes
# sure that run OF never begins anything here again: a request of it that lay on the way and arrives late does nothing. So
# what its journal does not tell by then was not done.
do_journal() {
  if ! find_state; then error no_state "$STATE is not a folder of ours, so there is no journal."; return 1; fi
  state=ended
  if command -v flock >/dev/null 2>&1; then
    if ! { command exec 8>>"$STATE/lock"; } 2>/dev/null; then error no_state "The lock in $STATE cannot be opened."; return 1; fi
    if ! flock -n 8; then state=running
    elif [ "$SEAL" = yes ] && printf '' >"$STATE/run-$OF.sealed"; then state=sealed; fi
  fi
  frame journal "$state"
  [ ! -r "$STATE/run-$OF" ] || cat "$STATE/run-$OF"
}

# ---- sync and drop-caches ------------------------------------------------------------------------------------------

# One file system that does not answer blocks sync and drop_caches in the kernel, for ever. DEAD = the first such mount.
find_dead_mount() {
  DEAD= JOBS= n=0
  while read -r dev mnt kind rest; do
    case $kind in nfs | nfs4 | cifs | smb3 | ceph | lustre | fuse | fuse.* | fuseblk | 9p | beegfs | gpfs | afs) ;; *) continue ;; esac
    decode_mount "$mnt"
    n=$((n + 1))
    job "mount$n" stat limit 2 stat -f "$DECODED"
    printf '%s\n' "$DECODED" >"$W/mount$n.name"
  done </proc/mounts
  await 3
  for j in $JOBS; do
    rc=
    [ ! -s "$W/$j.rc" ] || read -r rc <"$W/$j.rc"
    case $rc in '' | 124 | 137) read -r DEAD <"$W/$j.name"; return 0 ;; esac
  done
  return 1
}
# /proc/mounts writes space as \040; printf %b wants \0040.
decode_mount() { DECODED=$(printf '%s.' "$1" | sed 's/\\\([0-7]\)/\\0\1/g'); decode "${DECODED%.}"; }

do_sync() {
  make_workdir || { answer failed 'No folder that can be written to (/run, /tmp, /dev/shm).'; return; }
  if find_dead_mount; then
    answer skipped "The file system at $DEAD does not answer, and sync would hang on it."
  else
    JOBS=
    job sync sync limit "$SECONDS_MAX" sync
    if await $((SECONDS_MAX + 1)) && read -r rc <"$W/sync.rc" && [ "$rc" = 0 ]; then answer 'done'
    else answer failed "sync had not ended after $SECONDS_MAX seconds: the disks are slow or stuck."; fi
  fi
  drop_workdir
}

dropped() { awk '$1 == "drop_pagecache" || $1 == "drop_slab" { n = n $1 "=" $2 " " } END { print n }' /proc/vmstat; }
write_level() { echo "$LEVEL" >/proc/sys/vm/drop_caches; }
do_drop() {
  make_workdir || { answer failed 'No folder that can be written to (/run, /tmp, /dev/shm).'; return; }
  why_not_drop
  if [ -n "$WHY" ]; then answer skipped "$WHY"; drop_workdir; return; fi
  before=$(dropped)
  JOBS=
  job drop awk write_level
  await "$SECONDS_MAX"
  rc=
  [ ! -s "$W/drop.rc" ] || read -r rc <"$W/drop.rc"
  case $rc in
  0) if [ "$(dropped)" != "$before" ]; then answer 'done'; else answer failed 'The kernel took the request, but its counters show that nothing was dropped.'; fi ;;
  '') answer failed "The kernel was still dropping caches after $SECONDS_MAX seconds and goes on by itself." ;;
  *) answer failed 'The kernel refused the write to /proc/sys/vm/drop_caches.' ;;
  esac
  drop_workdir
}
why_not_drop() {
  WHY=
  if [ "$ME" -ne 0 ]; then
    WHY="Dropping caches needs root. One line in /etc/sudoers.d/reclaim allows it: $(id -un) ALL=(root) NOPASSWD: /usr/local/sbin/reclaim-host \"\" (with privilege: helper)"
  elif [ ! -w /proc/sys/vm/drop_caches ] || grep -q '^proc /proc/sys proc ro' /proc/mounts; then
    WHY='/proc/sys is read-only here: this is a container, and only its host can drop caches.'
  elif [ "$LEVEL" != 1 ] && [ -e /proc/spl/kstat/zfs/arcstats ]; then
    WHY='ZFS is in use here, and dropping slab caches would empty its cache and stall it.'
  elif find_dead_mount; then
    WHY="The file system at $DEAD does not answer, and dropping caches would hang on it."
  fi
}

# ---- the request ----------------------------------------------------------------------------------------------------

bad_request() { error bad_request "$1"; return 1; }

# Every word is checked here, once; nothing below sees an unchecked one.
read_request() {
  N= RUN=none VERB= SCOPE=full WINDOW=1 SECONDS_MAX=10 BOOT=- GRACE=1000 LEVEL=1 MIN_AGE=300 OF=none SEAL=no TARGETS= PROTECT= complete=
  case $1 in *[!A-Za-z0-9._/\\\ "$NL"-]*) return 1 ;; esac
  set -f
  IFS=$NL
  for line in $1; do
    IFS=$SPACES; set -- $line
    case $1 in
    reclaim) N=$3; [ "$2" = 1 ] || return 1 ;;
    run) RUN=$2 ;;
    verb) VERB=$2 ;;
    scope) SCOPE=$2 ;;
    window) WINDOW=$2 ;;
    seconds) is_number "$2" && SECONDS_MAX=$2 || return 1 ;;
    boot) BOOT=$2 ;;
    grace) is_number "$2" && GRACE=$2 || return 1 ;;
    level) case $2 in 1 | 2 | 3) LEVEL=$2 ;; *) return 1 ;; esac ;;
    of) OF=$2 ;;
    seal) SEAL=$2 ;;
    min-age) is_number "$2" && MIN_AGE=$2 || return 1 ;;
    target) shift; TARGETS="$TARGETS${TARGETS:+$NL}$*" ;;
    protect) [ $# -eq 5 ] || return 1; shift; PROTECT="$PROTECT${PROTECT:+$NL}$*" ;;
    end) [ "$2" = "$N" ] && complete=yes ;;
    *) return 1 ;;
    esac
  done
  IFS=$SPACES
  set +f
  case $N in *[!a-f0-9]* | '') return 1 ;; esac
  [ ${#N} -eq 32 ] && [ -n "$complete" ] || return 1
  case $RUN in *[!A-Za-z0-9-]* | '') return 1 ;; esac
  case $OF in *[!A-Za-z0-9-]* | '') return 1 ;; esac
  case $WINDOW in *[!0-9.]* | *.*.* | '' | ??????*) return 1 ;; esac
}
# check_targets WORDS NUMBERS: every target has so many words, the first so many of them numbers.
check_targets() {
  want=$1 numbers=$2
  [ -n "$TARGETS" ] || return 1
  IFS=$NL
  for t in $TARGETS; do
    IFS=$SPACES; set -- $t
    [ $# -eq "$want" ] && is_number "$1" || return 1
    [ "$numbers" -lt 2 ] || is_number "$2" || return 1
  done
  IFS=$SPACES
}

# reclaim_host REQUEST: the one entry.
reclaim_host() {
  while read -r key ME rest; do [ "$key" != Uid: ] || { ME=${rest%%[!0-9]*}; break; }; done </proc/self/status
  JOBS='' STATE='' JOURNAL=/dev/null
  if ! read_request "$1"; then
    printf 'reclaim-host: not a request this version understands (it speaks version 1)\n' >&2
    return 64
  fi
  # What was begun is finished and written to the journal also when nobody listens any more.
  trap '' HUP PIPE
  frame begin 1 "$VERB" "$ME"
  case $VERB in
  collect) collect ;;
  kill) if check_targets 4 2; then take_lock && { set -f; do_kill; set +f; }; else bad_request 'a target of kill is PID START UID EXE'; fi ;;
  remove-files) if check_targets 3 2; then take_lock && { set -f; do_remove_files; set +f; }; else bad_request 'a target of remove-files is DEV INO PATH'; fi ;;
  ipcrm) if check_targets 1 1; then take_lock && do_ipcrm; else bad_request 'a target of ipcrm is SHMID'; fi ;;
  sync) take_lock && do_sync ;;
  drop-caches) take_lock && do_drop ;;
  journal) do_journal ;;
  *) bad_request "there is no verb $VERB" ;;
  esac
  rc=$?
  [ "$JOURNAL" = /dev/null ] || note end "$VERB"
  frame end $rc
}

# Installed, it is asked on stdin; in a script sent to `sh -s`, the call is the script's last line.
case ${0##*/} in
reclaim-host | reclaim-host.sh) reclaim_host "$(head -c 1000000)" ;;
esac
