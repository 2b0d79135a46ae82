/* types.h: the part of LLVM's C API that ingot uses: opaque types and enumerations with stable
 * values. With it ingot is built without LLVM's headers and loads the library at run time. */
#ifndef INGOT_BACK_LLVM_TYPES_H
#define INGOT_BACK_LLVM_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef int LLVMBool;
typedef unsigned LLVMAttributeIndex;
typedef struct LLVMOpaqueContext *LLVMContextRef;
typedef struct LLVMOpaqueModule *LLVMModuleRef;
typedef struct LLVMOpaqueType *LLVMTypeRef;
typedef struct LLVMOpaqueValue *LLVMValueRef;
typedef struct LLVMOpaqueBasicBlock *LLVMBasicBlockRef;
typedef struct LLVMOpaqueBuilder *LLVMBuilderRef;
typedef struct LLVMOpaqueAttributeRef *LLVMAttributeRef;
typedef struct LLVMOpaqueMemoryBuffer *LLVMMemoryBufferRef;
typedef struct LLVMOpaqueTargetData *LLVMTargetDataRef;
typedef struct LLVMOpaqueTargetMachine *LLVMTargetMachineRef;
typedef struct LLVMTarget *LLVMTargetRef;
typedef struct LLVMOpaqueDiagnosticInfo *LLVMDiagnosticInfoRef;
typedef void (*LLVMDiagnosticHandler)(LLVMDiagnosticInfoRef, void *);
typedef struct LLVMOpaquePassBuilderOptions *LLVMPassBuilderOptionsRef;
typedef struct LLVMOpaqueError *LLVMErrorRef;
typedef struct LLVMOrcOpaqueLLJIT *LLVMOrcLLJITRef;
typedef struct LLVMOrcOpaqueLLJITBuilder *LLVMOrcLLJITBuilderRef;
typedef struct LLVMOrcOpaqueJITDylib *LLVMOrcJITDylibRef;
typedef struct LLVMOrcOpaqueDefinitionGenerator *LLVMOrcDefinitionGeneratorRef;
typedef struct LLVMOrcOpaqueSymbolStringPoolEntry *LLVMOrcSymbolStringPoolEntryRef;
typedef struct LLVMOrcOpaqueMaterializationUnit *LLVMOrcMaterializationUnitRef;
typedef int (*LLVMOrcSymbolPredicate)(void *user, LLVMOrcSymbolStringPoolEntryRef symbol);

typedef struct LLVMJITSymbolFlags {
  uint8_t GenericFlags, TargetFlags;
} LLVMJITSymbolFlags;
typedef struct LLVMJITEvaluatedSymbol {
  uint64_t Address;
  LLVMJITSymbolFlags Flags;
} LLVMJITEvaluatedSymbol;
typedef struct LLVMOrcCSymbolMapPair {
  LLVMOrcSymbolStringPoolEntryRef Name;
  LLVMJITEvaluatedSymbol Sym;
} LLVMOrcCSymbolMapPair;

typedef enum LLVMOpcode {
  LLVMAdd = 8,
  LLVMFAdd = 9,
  LLVMSub = 10,
  LLVMFSub = 11,
  LLVMMul = 12,
  LLVMFMul = 13,
  LLVMUDiv = 14,
  LLVMSDiv = 15,
  LLVMFDiv = 16,
  LLVMURem = 17,
  LLVMSRem = 18,
  LLVMShl = 20,
  LLVMLShr = 21,
  LLVMAShr = 22,
  LLVMAnd = 23,
  LLVMOr = 24,
  LLVMXor = 25,
  LLVMTrunc = 30,
  LLVMZExt = 31,
  LLVMSExt = 32,
  LLVMFPToUI = 33,
  LLVMFPToSI = 34,
  LLVMUIToFP = 35,
  LLVMSIToFP = 36,
  LLVMFPTrunc = 37,
  LLVMFPExt = 38,
  LLVMPtrToInt = 39,
  LLVMBitCast = 41
} LLVMOpcode;
typedef enum LLVMIntPredicate {
  LLVMIntEQ = 32,
  LLVMIntNE,
  LLVMIntUGT,
  LLVMIntUGE,
  LLVMIntULT,
  LLVMIntULE,
  LLVMIntSGT,
  LLVMIntSGE,
  LLVMIntSLT,
  LLVMIntSLE
} LLVMIntPredicate;
typedef enum LLVMRealPredicate {
  LLVMRealOEQ = 1,
  LLVMRealOGT,
  LLVMRealOGE,
  LLVMRealOLT,
  LLVMRealOLE,
  LLVMRealUNO = 8,
  LLVMRealUNE = 14
} LLVMRealPredicate;
typedef enum LLVMDiagnosticSeverity { LLVMDSError = 0 } LLVMDiagnosticSeverity;
typedef enum LLVMLinkage {
  LLVMExternalLinkage = 0,
  LLVMInternalLinkage = 8,
  LLVMPrivateLinkage = 9
} LLVMLinkage;
typedef enum LLVMCodeGenOptLevel { LLVMCodeGenLevelDefault = 2 } LLVMCodeGenOptLevel;
typedef enum LLVMRelocMode { LLVMRelocPIC = 2 } LLVMRelocMode;
typedef enum LLVMCodeModel { LLVMCodeModelDefault = 0 } LLVMCodeModel;
typedef enum LLVMCodeGenFileType { LLVMAssemblyFile = 0, LLVMObjectFile = 1 } LLVMCodeGenFileType;
typedef enum LLVMVerifierFailureAction { LLVMReturnStatusAction = 2 } LLVMVerifierFailureAction;
typedef enum LLVMInlineAsmDialect { LLVMInlineAsmDialectATT = 0 } LLVMInlineAsmDialect;

#endif
