/* object.h: what the three object formats (ELF, Mach-O, COFF) spell differently. For .S files only. */
#ifndef MAHE_OBJECT_H
#define MAHE_OBJECT_H

#if defined(__APPLE__)
#define SYMBOL(name) _##name
#define LOCAL(name) L##name
#define HIDE(name) .private_extern SYMBOL(name)
#define TYPE(name)
#define SIZE(name)
#elif defined(__ELF__)
#define SYMBOL(name) name
#define LOCAL(name) .L##name
#define HIDE(name) .hidden SYMBOL(name)
#define TYPE(name) .type SYMBOL(name), %function
#define SIZE(name) .size SYMBOL(name), . - SYMBOL(name)
#else
#define SYMBOL(name) name
#define LOCAL(name) .L##name
#define HIDE(name)
#define TYPE(name)
#define SIZE(name)
#endif

#endif
