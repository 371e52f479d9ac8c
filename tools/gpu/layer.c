/* A layer of the OpenCL loader that presents Intel's OpenCL runtime for CPUs as an integrated Intel GPU, so that
   OpenVINO's GPU plugin runs on a machine without a GPU. tools/gpu/environment.py compiles it and sets OPENCL_LAYERS.

   MO_LOOP_GPU_CACHE=FOLDER   keep compiled programs
   MO_LOOP_GPU_TRACE=1        print the kernels that are enqueued

   The plugin's host code is the real one: graph transformations, memory, shapes, control flow. Its kernels are its own
   OpenCL sources. What is not: oneDNN, images, the speed, the functions of the processor (exp, sin ...). */

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_layer.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct _cl_icd_dispatch *runtime;
static struct _cl_icd_dispatch layer;

/* ---- The device */

enum { /* cl_intel_device_attribute_query and cl_intel_required_subgroup_size */
    SUB_GROUP_SIZES = 0x4108,
    IP_VERSION = 0x4250,
    DEVICE_ID,
    SLICES,
    SUB_SLICES,
    EUS,
    THREADS,
    FEATURES
};

static cl_int answer(const void *value, size_t size, size_t room, void *out, size_t *written) {
    if (written)
        *written = size;
    if (out && room < size)
        return CL_INVALID_VALUE;
    if (out)
        memcpy(out, value, size);
    return CL_SUCCESS;
}

static cl_int answer_extensions(cl_device_id device, size_t room, void *out, size_t *written) {
    static const char added[] = " cl_intel_device_attribute_query cl_intel_required_subgroup_size cl_intel_subgroups"
                                " cl_intel_subgroups_char cl_intel_subgroups_short cl_intel_subgroup_local_block_io";
    size_t length = 0;
    cl_int error = runtime->clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, 0, NULL, &length);
    if (error)
        return error;
    char *text = calloc(1, length + sizeof added);
    error = runtime->clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, length, text, NULL);
    strcat(text, added);
    if (!error)
        error = answer(text, strlen(text) + 1, room, out, written);
    free(text);
    return error;
}

static cl_int CL_API_CALL device_ids(cl_platform_id platform, cl_device_type type, cl_uint room, cl_device_id *out,
                                     cl_uint *found) {
    (void)type;
    return runtime->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, room, out, found);
}

static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info key, size_t room, void *out,
                                      size_t *written) {
    static const char name[] = "Intel(R) Iris(R) Xe Graphics [0x9a49]";
    static const size_t sub_groups[] = {8, 16, 32}, items[] = {512, 512, 512}, group = 512;
    static const cl_device_type gpu = CL_DEVICE_TYPE_GPU;
    /* Small, so that a bound of a shape that is taken for its size is an error and does not fill the machine. */
    static const cl_ulong allocation = 1UL << 31, memory = 1UL << 32, local = 1UL << 16;
    static const cl_bitfield dp4a = 1; /* without DPAS the plugin uses its own kernels instead of oneDNN */
    cl_uint number;
    switch (key) {
    case CL_DEVICE_TYPE: return answer(&gpu, sizeof gpu, room, out, written);
    case CL_DEVICE_NAME: return answer(name, sizeof name, room, out, written);
    case CL_DEVICE_EXTENSIONS: return answer_extensions(device, room, out, written);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE: return answer(&group, sizeof group, room, out, written);
    case CL_DEVICE_MAX_WORK_ITEM_SIZES: return answer(items, sizeof items, room, out, written);
    case SUB_GROUP_SIZES: return answer(sub_groups, sizeof sub_groups, room, out, written);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE: return answer(&allocation, sizeof allocation, room, out, written);
    case CL_DEVICE_GLOBAL_MEM_SIZE: return answer(&memory, sizeof memory, room, out, written);
    case CL_DEVICE_LOCAL_MEM_SIZE: return answer(&local, sizeof local, room, out, written);
    case FEATURES: return answer(&dp4a, sizeof dp4a, room, out, written);
    /* Gen11: on Xe-LP (0x03000000) LSTMSequence goes to oneDNN, whose machine code does not run on a CPU. */
    case IP_VERSION: number = 0x02c00000; break;
    case DEVICE_ID: number = 0x9a49; break;
    case SLICES: number = 1; break;
    case SUB_SLICES: number = 6; break;
    case EUS: number = 16; break;
    case THREADS: number = 7; break;
    case CL_DEVICE_MAX_COMPUTE_UNITS: number = 96; break;
    case CL_DEVICE_MAX_CLOCK_FREQUENCY: number = 1300; break;
    case CL_DEVICE_PARTITION_MAX_SUB_DEVICES: number = 0; break;
    default: return runtime->clGetDeviceInfo(device, key, room, out, written);
    }
    return answer(&number, sizeof number, room, out, written);
}

/* ---- Indices

   The sub-groups of the CPU runtime run along dimension 0, those of a GPU along the linear local index. So each kernel
   is enqueued in one dimension, and computes its three-dimensional indices from local sizes and numbers of groups,
   which it reads from a table in the memory of this process, at an address that the source can name. */

#define TABLE 0x20000000000
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

static const char prefix[] =
    "#define mo_sizes ((const __global uint*)" TEXT(TABLE) ")\n"
    "static inline size_t mo_unfold(size_t n, const __global uint* s, uint d) {\n"
    "  return d == 0 ? n % s[0] : d == 1 ? n / s[0] % s[1] : d == 2 ? n / ((size_t)s[0] * s[1]) : 0; }\n"
    "static inline size_t mo_local_id(uint d) { return mo_unfold(get_local_id(0), mo_sizes, d); }\n"
    "static inline size_t mo_group_id(uint d) { return mo_unfold(get_group_id(0), mo_sizes + 3, d); }\n"
    "static inline size_t mo_linear_local_id(void) { return get_local_id(0); }\n"
    "static inline size_t mo_local_size(uint d) { return d < 3 ? mo_sizes[d] : 1; }\n"
    "static inline size_t mo_groups(uint d) { return d < 3 ? mo_sizes[3 + d] : 1; }\n"
    "static inline size_t mo_global_id(uint d) { return mo_group_id(d) * mo_local_size(d) + mo_local_id(d); }\n"
    "static inline size_t mo_global_size(uint d) { return mo_groups(d) * mo_local_size(d); }\n"
    "static inline size_t mo_linear_global_id(void) {\n"
    "  return (mo_global_id(2) * mo_global_size(1) + mo_global_id(1)) * mo_global_size(0) + mo_global_id(0); }\n"
    "#define get_local_id(d) mo_local_id(d)\n"
    "#define get_group_id(d) mo_group_id(d)\n"
    "#define get_local_size(d) mo_local_size(d)\n"
    "#define get_enqueued_local_size(d) mo_local_size(d)\n"
    "#define get_num_groups(d) mo_groups(d)\n"
    "#define get_global_id(d) mo_global_id(d)\n"
    "#define get_global_size(d) mo_global_size(d)\n"
    "#define get_global_offset(d) ((size_t)0)\n"
    "#define get_local_linear_id() mo_linear_local_id()\n"
    "#define get_global_linear_id() mo_linear_global_id()\n"
    "#define reqd_work_group_size(x, y, z)\n"
    "#define work_group_size_hint(x, y, z)\n"
    /* The native functions of a GPU are nearly exact, and its power takes the absolute value of the base. Those of the
       CPU runtime have four digits, and no power of negative numbers. */
    "#define native_exp(x) exp(x)\n"
    "#define native_exp2(x) exp2(x)\n"
    "#define native_log2(x) log2(x)\n"
    "#define native_powr(x, y) powr(fabs(x), y)\n";

/* The work items of a sub-group run in lockstep on a GPU, so that permute_f_y_axes has no barrier between what they
   write and what others read. */
static const char lockstep[] = "const int f = (f_begin + j_vec)", barrier[] = "barrier(CLK_LOCAL_MEM_FENCE); ";

static char *with_barriers(const char *text, size_t *length) {
    const size_t most = 64, width = sizeof barrier - 1;
    char *copy = malloc(*length + most * width + 1), *to = copy;
    const char *end = text + *length;
    for (size_t count = 0; text < end;) {
        if (count < most && (size_t)(end - text) >= sizeof lockstep - 1 && !memcmp(text, lockstep, sizeof lockstep - 1)) {
            memcpy(to, barrier, width);
            to += width;
            count++;
        }
        *to++ = *text++;
    }
    *to = 0;
    *length = (size_t)(to - copy);
    return copy;
}

static uint32_t *sizes(void) {
    static uint32_t *table;
    if (!table) {
        void *at = (void *)TABLE;
        table = mmap(at, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (table != at) {
            fprintf(stderr, "mo_loop GPU layer: the address of the table of sizes is taken\n");
            abort();
        }
    }
    return table;
}

static cl_int CL_API_CALL enqueue(cl_command_queue queue, cl_kernel kernel, cl_uint rank, const size_t *offset,
                                  const size_t *global, const size_t *local, cl_uint waits, const cl_event *events,
                                  cl_event *event) {
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    size_t items[3] = {1, 1, 1}, group[3] = {1, 1, 1};
    for (cl_uint i = 0; i < rank; i++) {
        items[i] = global[i];
        if (local)
            group[i] = local[i];
        if (offset && offset[i])
            return CL_INVALID_GLOBAL_OFFSET;
    }
    if (!local)
        for (group[0] = 64; items[0] % group[0]; group[0]--)
            ;
    if (getenv("MO_LOOP_GPU_TRACE")) {
        char name[256] = "";
        runtime->clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
        fprintf(stderr, "%s [%zu,%zu,%zu] by [%zu,%zu,%zu]\n", name, items[0], items[1], items[2], group[0], group[1],
                group[2]);
    }
    size_t all = items[0] * items[1] * items[2], each = group[0] * group[1] * group[2];
    pthread_mutex_lock(&one_at_a_time);
    runtime->clFinish(queue);
    for (int i = 0; i < 3; i++) {
        sizes()[i] = group[i];
        sizes()[3 + i] = items[i] / group[i];
    }
    cl_int error = runtime->clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &all, &each, waits, events, event);
    runtime->clFinish(queue);
    pthread_mutex_unlock(&one_at_a_time);
    return error;
}

/* ---- Programs, and the folder that keeps them compiled

   The plugin gives one source the same options always, so the source names the program. */

struct program {
    cl_program program;
    char file[512]; /* empty if nothing is to be written */
    struct program *next;
};

static struct program *programs;
static pthread_mutex_t list = PTHREAD_MUTEX_INITIALIZER;

static void file_of(char *file, size_t room, cl_uint count, const char **texts, const size_t *lengths) {
    const char *folder = getenv("MO_LOOP_GPU_CACHE");
    uint64_t hash = 0xcbf29ce484222325, total = 0; /* FNV-1a */
    for (cl_uint i = 0; i < count; i++)
        for (size_t k = 0; k < lengths[i]; k++, total++)
            hash = (hash ^ (unsigned char)texts[i][k]) * 0x100000001b3;
    *file = 0;
    if (folder)
        snprintf(file, room, "%s/%016lx-%lx", folder, (unsigned long)hash, (unsigned long)total);
}

static cl_program read_program(cl_context context, const char *file) {
    FILE *stream = *file ? fopen(file, "rb") : NULL;
    if (!stream)
        return NULL;
    fseek(stream, 0, SEEK_END);
    size_t size = (size_t)ftell(stream);
    rewind(stream);
    unsigned char *binary = malloc(size);
    int is_read = fread(binary, 1, size, stream) == size;
    fclose(stream);
    cl_program program = NULL;
    cl_device_id device;
    cl_int error = CL_SUCCESS;
    if (is_read && !runtime->clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof device, &device, NULL))
        program = runtime->clCreateProgramWithBinary(context, 1, &device, &size, (const unsigned char **)&binary,
                                                     NULL, &error);
    free(binary);
    return error ? NULL : program;
}

static void write_program(cl_program program, const char *file) {
    char draft[sizeof ((struct program *)0)->file + 32];
    size_t size = 0;
    if (runtime->clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL) || !size)
        return;
    unsigned char *binary = malloc(size);
    if (!runtime->clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL)) {
        snprintf(draft, sizeof draft, "%s.%d", file, (int)getpid());
        FILE *stream = fopen(draft, "wb");
        if (stream) {
            int is_written = fwrite(binary, 1, size, stream) == size;
            is_written &= !fclose(stream);
            if (!is_written || rename(draft, file))
                unlink(draft);
        }
    }
    free(binary);
}

static cl_program CL_API_CALL create_program(cl_context context, cl_uint count, const char **given,
                                             const size_t *given_lengths, cl_int *error) {
    const char **texts = malloc((count + 1) * sizeof *texts);
    size_t *lengths = malloc((count + 1) * sizeof *lengths);
    struct program *entry = malloc(sizeof *entry);
    texts[0] = prefix;
    lengths[0] = sizeof prefix - 1;
    for (cl_uint i = 0; i < count; i++) {
        lengths[i + 1] = given_lengths && given_lengths[i] ? given_lengths[i] : strlen(given[i]);
        texts[i + 1] = with_barriers(given[i], &lengths[i + 1]);
    }
    sizes();
    file_of(entry->file, sizeof entry->file, count + 1, texts, lengths);
    cl_program program = read_program(context, entry->file);
    if (program) {
        *entry->file = 0;
        if (error)
            *error = CL_SUCCESS;
    } else
        program = runtime->clCreateProgramWithSource(context, count + 1, texts, lengths, error);
    entry->program = program;
    pthread_mutex_lock(&list);
    entry->next = programs;
    programs = entry;
    pthread_mutex_unlock(&list);
    for (cl_uint i = 0; i < count; i++)
        free((void *)texts[i + 1]);
    free(texts);
    free(lengths);
    return program;
}

static cl_int CL_API_CALL build_program(cl_program program, cl_uint count, const cl_device_id *devices,
                                        const char *given, void(CL_CALLBACK *notify)(cl_program, void *), void *data) {
    static const char *unknown[] = {"-cl-intel-256-GRF-per-thread", "-cl-intel-greater-than-4GB-buffer-required",
                                    "-cl-intel-no-prera-scheduling", "-cl-no-subgroup-ifp"};
    char *options = strdup(given ? given : "");
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        for (char *at; (at = strstr(options, unknown[i]));)
            memset(at, ' ', strlen(unknown[i]));
    cl_int error = runtime->clBuildProgram(program, count, devices, options, notify, data);
    pthread_mutex_lock(&list);
    for (struct program *entry = programs; entry && !error; entry = entry->next)
        if (entry->program == program) {
            if (*entry->file)
                write_program(program, entry->file);
            *entry->file = 0;
            break;
        }
    pthread_mutex_unlock(&list);
    if (error && count && !strstr(options, "-cmc")) { /* whether C for Metal compiles is only asked */
        static char log[100000];
        runtime->clGetProgramBuildInfo(program, devices[0], CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
        fprintf(stderr, "mo_loop GPU layer: a program was not compiled with %s:\n%.3000s\n", options, log);
    }
    free(options);
    return error;
}

/* The plugin creates kernels of a program that it has released, which this runtime refuses: programs are kept. */
static cl_int CL_API_CALL release_program(cl_program program) {
    (void)program;
    return CL_SUCCESS;
}

/* ---- Unified shared memory: its copies do not overtake kernels, which are enqueued one at a time */

static cl_int(CL_API_CALL *runtime_copy)(cl_command_queue, cl_bool, void *, const void *, size_t, cl_uint,
                                         const cl_event *, cl_event *);
static cl_int(CL_API_CALL *runtime_fill)(cl_command_queue, void *, const void *, size_t, size_t, cl_uint,
                                         const cl_event *, cl_event *);

static cl_int CL_API_CALL copy(cl_command_queue queue, cl_bool blocking, void *to, const void *from, size_t size,
                               cl_uint waits, const cl_event *events, cl_event *event) {
    (void)blocking;
    runtime->clFinish(queue);
    return runtime_copy(queue, CL_TRUE, to, from, size, waits, events, event);
}

static cl_int CL_API_CALL fill(cl_command_queue queue, void *to, const void *pattern, size_t pattern_size, size_t size,
                               cl_uint waits, const cl_event *events, cl_event *event) {
    runtime->clFinish(queue);
    cl_int error = runtime_fill(queue, to, pattern, pattern_size, size, waits, events, event);
    runtime->clFinish(queue);
    return error;
}

static void *CL_API_CALL extension(cl_platform_id platform, const char *name) {
    void *found = runtime->clGetExtensionFunctionAddressForPlatform(platform, name);
    if (found && !strcmp(name, "clEnqueueMemcpyINTEL")) {
        runtime_copy = found;
        return copy;
    }
    if (found && !strcmp(name, "clEnqueueMemFillINTEL")) {
        runtime_fill = found;
        return fill;
    }
    return found;
}

/* ---- The interface of a layer */

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info key, size_t room, void *out, size_t *written) {
    static const char name[] = "CPU as GPU";
    static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    if (key == CL_LAYER_API_VERSION)
        return answer(&version, sizeof version, room, out, written);
    return key == CL_LAYER_NAME ? answer(name, sizeof name, room, out, written) : CL_INVALID_VALUE;
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint count, const struct _cl_icd_dispatch *given, cl_uint *own_count,
                                            const struct _cl_icd_dispatch **own) {
    runtime = given;
    memcpy(&layer, given, count * sizeof(void *) < sizeof layer ? count * sizeof(void *) : sizeof layer);
    layer.clGetDeviceIDs = device_ids;
    layer.clGetDeviceInfo = device_info;
    layer.clCreateProgramWithSource = create_program;
    layer.clBuildProgram = build_program;
    layer.clReleaseProgram = release_program;
    layer.clEnqueueNDRangeKernel = enqueue;
    layer.clGetExtensionFunctionAddressForPlatform = extension;
    *own = &layer;
    *own_count = sizeof layer / sizeof(void *);
    return CL_SUCCESS;
}
