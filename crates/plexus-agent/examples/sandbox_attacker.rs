//! An attacker for the tests of this crate, which runs in a sandbox: `reach signal PID…`, `reach trace PID` and `reach memory PID`. It prints
//! one line `REACHED …` for each way in which it reached the process, and `tried` at the end.

#![expect(clippy::print_stdout, reason = "its output is what the tests read")]

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal, test_kill_process,
};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let pids = args.iter().skip(1).map(|pid| pid.parse().ok().and_then(Pid::from_raw));
    let pids: Vec<Pid> = pids.map(|pid| pid.unwrap_or(Pid::INIT)).collect();
    for pid in pids {
        match args[0].as_str() {
            "signal" => signal(pid),
            "trace" => trace(pid),
            "memory" => memory(pid),
            what => panic!("unknown method {what}"),
        }
    }
    println!("tried");
}

fn reached(by: &str, answer: i64) {
    if answer >= 0 || ![libc::EPERM, libc::ENOSYS].map(|error| -i64::from(error)).contains(&answer) {
        println!("REACHED by {by}: {answer}");
    }
}

fn signal(pid: Pid) {
    if test_kill_process(pid).is_ok() {
        println!("REACHED {pid:?} by kill");
        let _ = kill_process(pid, Signal::CONT);
    }
    if pidfd_open(pid, PidfdFlags::empty()).is_ok_and(|pidfd| pidfd_send_signal(&pidfd, Signal::CONT).is_ok())
    {
        println!("REACHED {pid:?} by pidfd");
    }
}

/// Makes a system call. Returns the kernel's result, which is `-errno` for a failure.
fn call(number: i64, arguments: [i64; 6]) -> i64 {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: these calls read and write the memory of other processes at address 0 only.
    let answer = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if answer == -1 {
        return -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap_or(0));
    }
    answer
}

fn trace(pid: Pid) {
    let target = i64::from(pid.as_raw_pid());
    if let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) {
        let taken = call(libc::SYS_pidfd_getfd, [i64::from(pidfd.as_raw_fd()), 1, 0, 0, 0, 0]);
        reached("pidfd_getfd", taken);
        if let Ok(descriptor @ 0..) = i32::try_from(taken) {
            // SAFETY: the kernel has just created this descriptor for us.
            let stdout = unsafe { OwnedFd::from_raw_fd(descriptor) };
            let _ = rustix::io::write(&stdout, b"REACHED stdout: forged\n");
        }
        let taken = call(0x4000_0000 | 438, [i64::from(pidfd.as_raw_fd()), 1, 0, 0, 0, 0]);
        reached("pidfd_getfd of x32", taken);
    }
    // One vector of one byte at address 0: EFAULT shows that the kernel allowed the attempt.
    let byte = [0_u8; 1];
    let ours = [byte.as_ptr() as i64, 1];
    let theirs = [0_i64, 1];
    for (name, number) in [("readv", libc::SYS_process_vm_readv), ("writev", libc::SYS_process_vm_writev)] {
        let vectors = [target, ours.as_ptr() as i64, 1, theirs.as_ptr() as i64, 1, 0];
        reached(&format!("process_vm_{name}"), call(number, vectors));
    }
    for (name, request) in [("attach", libc::PTRACE_ATTACH), ("seize", libc::PTRACE_SEIZE)] {
        let request = i64::from(request);
        for (abi, answer) in [
            ("x86_64", call(libc::SYS_ptrace, [request, target, 0, 0, 0, 0])),
            ("i386", call_i386(26, request, target)),
            ("x32", call(0x4000_0000 | 521, [request, target, 0, 0, 0, 0])),
        ] {
            reached(&format!("{name} of {abi}"), answer);
        }
    }
}

/// A system call by its number for 32-bit programs. A 64-bit program can make it, too.
#[cfg(target_arch = "x86_64")]
fn call_i386(number: i64, first: i64, second: i64) -> i64 {
    let answer: i64;
    // SAFETY: the call takes two numbers and two zeros, and accesses no memory. `rbx` is restored.
    unsafe {
        std::arch::asm!(
            "xchg rbx, {first}",
            "int 0x80",
            "xchg rbx, {first}",
            first = inout(reg) first => _,
            inlateout("rax") number => answer,
            in("rcx") second,
            in("rdx") 0,
            in("rsi") 0,
            in("rdi") 0,
            lateout("r8") _, lateout("r9") _, lateout("r10") _, lateout("r11") _,
        );
    }
    i64::from(answer as i32)
}

#[cfg(not(target_arch = "x86_64"))]
fn call_i386(_: i64, _: i64, _: i64) -> i64 {
    -i64::from(libc::ENOSYS)
}

fn memory(pid: Pid) {
    let path = format!("/proc/{}/mem", pid.as_raw_pid());
    if std::fs::OpenOptions::new().write(true).open(path).is_ok() {
        println!("REACHED memory");
    }
}
